package kopf_test

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

// foreignLock is a lease that another process renews until that process is dead.
type foreignLock struct {
	fakeLock

	isHolderDead atomic.Bool
}

func (h *foreignLock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	if !h.isHolderDead.Load() {
		h.record = &resourcelock.LeaderElectionRecord{
			HolderIdentity: "another process", LeaseDurationSeconds: 15, RenewTime: metav1.Now(),
		}
	}
	return h.fakeLock.Get(ctx)
}

// checkedManager is a manager whose checks a test can call.
type checkedManager struct {
	ctrl.Manager

	readyzChecks, healthzChecks map[string]healthz.Checker
}

func newCheckedManager(m ctrl.Manager) *checkedManager {
	return &checkedManager{m, map[string]healthz.Checker{}, map[string]healthz.Checker{}}
}

func (a *checkedManager) AddReadyzCheck(name string, check healthz.Checker) error {
	a.readyzChecks[name] = check
	return a.Manager.AddReadyzCheck(name, check)
}

func (a *checkedManager) AddHealthzCheck(name string, check healthz.Checker) error {
	a.healthzChecks[name] = check
	return a.Manager.AddHealthzCheck(name, check)
}

// failing returns the names of the failing checks with their errors.
func failing(checks map[string]healthz.Checker) (all []string) {
	for _, name := range slices.Sorted(maps.Keys(checks)) {
		if err := checks[name](httptest.NewRequest(http.MethodGet, "/", nil)); err != nil {
			all = append(all, name+": "+err.Error())
		}
	}
	return all
}

// TestReadyOnStandby shows that a process that waits for the leadership is ready and does nothing. When it leads, all
// checks apply to it.
func TestReadyOnStandby(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-all runs it")
	}
	synctest.Test(t, func(t *testing.T) {
		lock, server, op := &foreignLock{}, servedAPI(), newCreationOperator(succeed)
		op.OnStartup("slow", func(ctx context.Context, _ *kopf.Activity) error {
			select {
			case <-ctx.Done():
			case <-time.After(time.Hour):
			}
			return nil
		})
		m := newCheckedManager(managerOn(t, server, electingBy(lock)))
		if err := op.SetupWithManager(m); err != nil {
			t.Fatal(err)
		}
		stop := startManager(t, m)
		want := func(when string, texts ...string) {
			t.Helper()
			got := strings.Join(failing(m.readyzChecks), "\n")
			if got != strings.Join(texts, "\n") {
				t.Errorf("%s: want %q, got %q", when, texts, got)
			}
			if dead := failing(m.healthzChecks); len(dead) > 0 {
				t.Errorf("%s: the liveness checks must succeed: %q", when, dead)
			}
		}
		time.Sleep(24 * time.Hour)
		want("another process leads")
		if n := server.count.Load(); n != 0 {
			t.Errorf("%d requests by a process that does not lead", n)
		}
		lock.isHolderDead.Store(true)
		time.Sleep(time.Minute)
		want("the process leads and runs its startup handlers",
			"test.example.org/startup: the startup handlers have not succeeded yet")
		time.Sleep(time.Hour)
		want("the process leads after its startup")
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// TestChecksOfTwoOperators shows that an operator that is refused does not replace the checks of another one.
func TestChecksOfTwoOperators(t *testing.T) {
	m := newCheckedManager(newManager(t, newScheme(t)))
	probing := func(name, text string) *kopf.Operator {
		op := kopf.New(name)
		op.OnProbe(
			"p",
			func(context.Context, *kopf.Activity) (any, error) { return nil, kopf.Permanent(fmt.Errorf("%s", text)) },
		)
		return op
	}
	for name, refused := range map[string]bool{"a.example.org": true, "b.example.org": false} {
		if err := probing(name, "of "+name).SetupWithManager(m); err != nil {
			t.Fatal(err)
		}
		if !refused {
			continue
		}
		err := probing(name, "of the refused one").SetupWithManager(m)
		const taken = `another operator of this manager has the name "a.example.org"`
		if err == nil || !strings.Contains(err.Error(), taken) {
			t.Errorf("a second operator of one name must be refused: %v", err)
		}
	}
	texts := strings.Join(failing(m.healthzChecks), "\n")
	for _, want := range []string{"a.example.org/probes: ", "of a.example.org", "b.example.org/probes: "} {
		if !strings.Contains(texts, want) {
			t.Errorf("want %q, got: %s", want, texts)
		}
	}
	if len(m.readyzChecks) != 10 || len(m.healthzChecks) != 4 {
		t.Errorf("each operator must have all checks: %q, %q", slices.Sorted(maps.Keys(m.readyzChecks)),
			slices.Sorted(maps.Keys(m.healthzChecks)))
	}
}
