package kopf_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	ctrl "sigs.k8s.io/controller-runtime"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

// fakeLock is a leader election lock that a test can make unavailable.
type fakeLock struct {
	mu            sync.Mutex
	record        *resourcelock.LeaderElectionRecord
	isUnavailable atomic.Bool
}

func (l *fakeLock) Get(context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.isUnavailable.Load():
		return nil, nil, errors.New("the API server does not answer")
	case l.record == nil:
		return nil, nil, apierrors.NewNotFound(schema.GroupResource{Resource: "leases"}, "l")
	}
	raw, err := json.Marshal(l.record)
	return l.record, raw, err
}

func (l *fakeLock) Create(_ context.Context, record resourcelock.LeaderElectionRecord) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.record = &record
	return nil
}

func (l *fakeLock) Update(_ context.Context, record resourcelock.LeaderElectionRecord) error {
	if l.isUnavailable.Load() {
		return errors.New("the API server does not answer")
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.record = &record
	return nil
}

func (*fakeLock) RecordEvent(string) {}
func (*fakeLock) Identity() string   { return "this process" }
func (*fakeLock) Describe() string   { return "lease" }

// lockOf is a lock of one of several processes.
type lockOf struct {
	*fakeLock

	process string
}

func (l lockOf) Identity() string { return l.process }

// writeCounter counts the requests that write, and how many of them come after the end of the manager.
type writeCounter struct {
	next         http.RoundTripper
	managerEnded atomic.Bool
	lateWrites   atomic.Int64
	allWrites    atomic.Int64
}

func (w *writeCounter) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Method != http.MethodGet {
		if w.allWrites.Add(1); w.managerEnded.Load() {
			w.lateWrites.Add(1)
		}
	}
	return w.next.RoundTrip(request)
}

// TestLostLease shows that a lost lease cancels running handlers at once. Nothing is started and nothing is written,
// not even the results that a graceful exit saves. Startup and cleanup run only while the lease is held.
func TestLostLease(t *testing.T) {
	for name, loses := range map[string]bool{"lost": true, "given back": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				memory, seen, lock := memapi.New(), &journal{}, &fakeLock{}
				memory.Install(widgetResource)
				memory.Put(widgetResource, body(map[string]any{"size": int64(1)}))
				server := &writeCounter{next: memory}
				ended := make(chan struct{})
				op := leasedOperator(seen, func() bool { return server.managerEnded.Load() })
				m := newElectingManager(t, server, lock, op)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				go func() {
					defer close(ended)
					err := m.Start(ctx)
					if lost := err != nil && strings.Contains(err.Error(), "leader election lost"); lost != loses {
						t.Errorf("the manager: %v", err)
					}
					server.managerEnded.Store(true)
				}()
				time.Sleep(time.Minute)
				if loses {
					lock.isUnavailable.Store(true)
				} else {
					cancel()
				}
				<-ended
				time.Sleep(time.Hour)
				refused := "refused: the manager does not wait for the operator any more, so nothing is written"
				want := []string{"startup", "first", "second", "second ended", "cleanup", refused}
				if loses {
					want = []string{"startup", "first", "second", "second ended after the end", refused}
				}
				seen.requireLines(t, want...)
				if server.lateWrites.Load() != 0 {
					t.Errorf("%d of %d writes came after the end of the manager, want none", server.lateWrites.Load(),
						server.allWrites.Load())
				}
			})
		})
	}
}

// TestLostLeaseDuringStartup shows that a lost lease ends a startup: no other activity runs, and no request is sent.
func TestLostLeaseDuringStartup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory, seen, lock, op := servedAPI(), &journal{}, &fakeLock{}, newCreationOperator(succeed)
		op.OnStartup("first", func(ctx context.Context, _ *kopf.Activity) error {
			seen.add("first")
			<-ctx.Done()
			seen.add(context.Cause(ctx).Error())
			return nil // the handler ignores the reason of its cancellation
		})
		op.OnStartup("second", func(context.Context, *kopf.Activity) error { seen.add("second"); return nil })
		op.OnCleanup("third", func(context.Context, *kopf.Activity) error { seen.add("third"); return nil })
		m, ended := newElectingManager(t, memory, lock, op), make(chan error)
		go func() { ended <- m.Start(t.Context()) }()
		time.Sleep(time.Minute)
		lock.isUnavailable.Store(true)
		if err := <-ended; err == nil || !strings.Contains(err.Error(), "leader election lost") {
			t.Errorf("the manager: %v", err)
		}
		time.Sleep(time.Hour)
		seen.requireLines(t, "first", kopf.ErrExiting.Error())
		if n := memory.count.Load(); n != 0 {
			t.Errorf("%d requests were sent, want none", n)
		}
	})
}

// TestPassedLease shows that a process that gives back its lease passes all objects to another one, which resumes them:
// no change is handled twice.
func TestPassedLease(t *testing.T) {
	onWidgets(t, func(t *testing.T, server *memapi.Server) {
		seen, lock := &journal{}, &fakeLock{}
		start := func(process string) (stop func() error) {
			op := kopf.New("test.example.org")
			note := func(_ context.Context, c *Change) error {
				seen.add(c.ID + " " + c.Object.Name + " by " + process)
				return nil
			}
			kopf.For(op, &Widget{}).OnCreate("create", note)
			kopf.For(op, &Widget{}).OnResume("resume", note)
			return startInManager(t, server, op, electingBy(lockOf{lock, process}), func(o *ctrl.Options) {
				o.LeaderElectionReleaseOnCancel = true
			})
		}
		create := func(name string) {
			server.Put(widgetResource, map[string]any{
				"metadata": map[string]any{"name": name, "namespace": "ns", "uid": "uid-" + name},
				"spec":     map[string]any{"size": int64(1)},
			})
			time.Sleep(time.Minute)
		}
		first := start("first")
		create("early")
		second := start("second")
		create("extra")
		seen.requireLines(t, "create early by first", "create extra by first")
		if err := first(); err != nil {
			t.Error(err)
		}
		create("late")
		if err := second(); err != nil {
			t.Error(err)
		}
		slices.Sort(seen.lines)
		seen.requireLines(t, "create early by first", "create extra by first", "create late by second",
			"resume early by second", "resume extra by second")
	})
}

// leasedOperator returns an operator with two handlers that run one after the other, and records their calls.
func leasedOperator(seen *journal, over func() bool) *kopf.Operator {
	op := kopf.New("test.example.org")
	op.OnStartup("a", func(context.Context, *kopf.Activity) error { seen.add("startup"); return nil })
	op.OnCleanup("b", func(context.Context, *kopf.Activity) error { seen.add("cleanup"); return nil })
	widgets := kopf.For(op, &Widget{})
	widgets.OnCreate("first", func(_ context.Context, c *Change) error {
		seen.add("first")
		go writeAfterEnd(c, seen, over)
		c.Patch(func(w *Widget) { w.Labels = map[string]string{"first": "done"} })
		return nil
	})
	widgets.OnCreate("second", func(ctx context.Context, c *Change) error {
		seen.add("second")
		<-ctx.Done()
		text := "second ended"
		if time.Sleep(time.Millisecond); over() {
			text += " after the end"
		}
		seen.add(text)
		c.Patch(func(w *Widget) { w.Labels["second"] = "half done" })
		return context.Cause(ctx)
	})
	return op
}

// writeAfterEnd waits for the end of the manager, and then tries to write with the handler's client.
func writeAfterEnd(c *Change, seen *journal, over func() bool) {
	for !over() {
		time.Sleep(time.Second)
	}
	other := &Widget{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "other"}}
	if err := c.Client.Create(context.Background(), other); err != nil {
		seen.add("refused: " + err.Error())
	}
}

// newElectingManager returns a manager with leader election and the operator, on virtual time.
func newElectingManager(
	t *testing.T, server http.RoundTripper, lock resourcelock.Interface, op *kopf.Operator,
) ctrl.Manager {
	t.Helper()
	m := managerOn(t, server, electingBy(lock))
	if err := op.SetupWithManager(m); err != nil {
		t.Fatal(err)
	}
	return m
}

// electingBy returns options with leader election by the lock.
func electingBy(lock resourcelock.Interface) func(o *ctrl.Options) {
	return func(o *ctrl.Options) {
		o.LeaderElection, o.LeaderElectionID, o.LeaderElectionResourceLockInterface = true, "l", lock
	}
}
