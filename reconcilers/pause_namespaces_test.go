package reconcilers_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/execution"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/health"
	decisions "github.com/kopf-runtime/kopf-runtime/reconcilers/journal"
)

// namespacedOperator holds an operator that records its calls, and objects in the namespaces "a" and "b" and outside of
// namespaces.
type namespacedOperator struct {
	namespaceClient

	gate            *reconcilers.Gate
	decisionJournal *decisions.Journal
	state           *health.Health

	mu             sync.Mutex
	calls          []string
	ended          []error       // the causes of the ends of handlers' contexts
	callDuration   time.Duration // the duration of a call
	forgottenCount int
}

func (l *namespacedOperator) call(ctx context.Context, call *handlers.Invocation) error {
	object := l.object("", "")
	object.Object = call.Cause.Body()
	l.mu.Lock()
	l.calls = append(l.calls, object.GetNamespace()+"/"+object.GetName())
	takes := l.callDuration
	l.mu.Unlock()
	select {
	case <-time.After(takes):
		return nil
	case <-ctx.Done():
		l.mu.Lock()
		defer l.mu.Unlock()
		l.ended = append(l.ended, context.Cause(ctx))
		return ctx.Err()
	}
}

func (l *namespacedOperator) requireCalls(when string, calls ...string) {
	l.t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if slices.Sort(l.calls); !slices.Equal(l.calls, calls) {
		l.t.Errorf("%s: the calls are %q, want %q", when, l.calls, calls)
	}
}

// requireReady requires that all readiness checks succeed.
func (l *namespacedOperator) requireReady(when string) {
	l.t.Helper()
	for _, check := range l.state.ReadyChecks() {
		if err := check.Run(); err != nil {
			l.t.Errorf("%s: %s: %v", when, check.Name, err)
		}
	}
}

// operate runs the operator until it is stopped.
func (l *namespacedOperator) operate(server *memapi.Server) (stop func()) {
	o := reconcilers.Options{
		Settings:   reconcilers.Settings{PauseTimeout: time.Minute},
		Gate:       l.gate,
		Journal:    l.decisionJournal,
		Health:     l.state,
		Namespaces: named("a*", "b*"),
		OnGone:     func(types.UID) { l.mu.Lock(); defer l.mu.Unlock(); l.forgottenCount++ },
	}
	return operateAll(l.t, server, o,
		registrationFor(l.t, "configmaps", &handlers.Handler{ID: "h", Reason: cause.Create, Call: l.call}),
		registrationFor(l.t, "nodes", &handlers.Handler{ID: "n", Reason: cause.Create, Call: l.call}))
}

func newNamespacedOperator(t *testing.T, server *memapi.Server) *namespacedOperator {
	t.Helper()
	l := &namespacedOperator{
		namespaceClient: namespaceClient{newDirectClient(t, server)}, gate: &reconcilers.Gate{}, state: health.New(),
		decisionJournal: decisions.New(decisions.RetentionLimits{}),
	}
	l.createNamespace("a")
	l.createNamespace("b")
	node := l.object("Node", "n1")
	node.SetNamespace("")
	if err := l.Create(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	return l
}

// TestPauseOfOneNamespace shows that the closed gate of one namespace pauses the operator only there, and that the
// handlers running there end as in a pause of the whole operator.
func TestPauseOfOneNamespace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := memapi.New()
		l := newNamespacedOperator(t, server)
		l.gate.NamespaceGate("a").Set(true)
		stop := l.operate(server)
		defer stop()
		time.Sleep(2 * time.Minute)
		l.requireCalls("with one namespace paused from the start", "/n1", "b/in-b")
		l.requireReady("with one namespace paused")
		if s := l.decisionJournal.OperatorState(); s.Paused || !slices.Equal(s.PausedNamespaces, []string{"a"}) {
			t.Errorf("want only the namespace a to be paused; paused: %t, namespaces: %q", s.Paused, s.PausedNamespaces)
		}
		l.gate.NamespaceGate("a").Set(false)
		time.Sleep(time.Minute)
		l.requireCalls("after the pause of the namespace", "/n1", "a/in-a", "b/in-b")
		l.callDuration = 10 * time.Second
		l.create("ConfigMap", "elsewhere") // in a namespace that does not match
		l.createNamespace("a2")
		time.Sleep(5 * time.Second)
		l.gate.NamespaceGate("a2").Set(true)
		if busy := l.gate.NamespaceGate("a2").Busy(); busy != 1 || l.gate.Busy() != 1 {
			t.Errorf("%d are busy in the namespace, %d in total, want 1 and 1", busy, l.gate.Busy())
		}
		<-l.gate.NamespaceGate("a2").Idle()
		l.mu.Lock()
		ended := slices.Clone(l.ended)
		l.callDuration = time.Hour
		l.mu.Unlock()
		if len(ended) > 0 {
			t.Errorf("running handlers must be able to finish; they ended with %v", ended)
		}
		l.createNamespace("a3")
		l.createNamespace("b3")
		time.Sleep(5 * time.Second)
		l.gate.NamespaceGate("a3").Set(true)
		time.Sleep(2 * time.Minute)
		l.mu.Lock()
		defer l.mu.Unlock()
		if len(l.ended) != 1 || !errors.Is(l.ended[0], execution.ErrPaused) || l.gate.Busy() != 1 {
			t.Errorf("after the timeout, only calls in the paused namespace must end: %v; busy: %d", l.ended,
				l.gate.Busy())
		}
	})
}

// TestPermissionOfOneNamespace shows that the end of the permission in one namespace ends the calls there at once, and
// no others.
func TestPermissionOfOneNamespace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := memapi.New()
		l := newNamespacedOperator(t, server)
		l.callDuration = 10 * time.Second
		l.gate.NamespaceGate("a").AllowWritesUntil(time.Now().Add(5 * time.Second))
		stop := l.operate(server)
		defer stop()
		time.Sleep(6 * time.Second)
		l.mu.Lock()
		if len(l.ended) != 1 || !errors.Is(l.ended[0], execution.ErrPaused) {
			t.Errorf("the ends are %v, want one", l.ended)
		}
		l.mu.Unlock()
		time.Sleep(time.Minute)
		for namespace, want := range map[string]bool{"a": false, "b": true} {
			content := l.object("ConfigMap", "in-"+namespace)
			if err := l.Get(t.Context(), types.NamespacedName{Namespace: namespace, Name: content.GetName()},
				content); err != nil || len(content.GetAnnotations()) > 0 != want {
				t.Errorf("in %s: error %v, annotations %v", namespace, err, content.GetAnnotations())
			}
		}
		l.gate.NamespaceGate("a").AllowWritesUntil(time.Time{})
		time.Sleep(time.Minute)
		l.requireCalls("after the permission was renewed", "/n1", "a/in-a", "a/in-a", "b/in-b")
	})
}

// TestPausedNamespaceVanishes shows that the objects of a paused namespace are forgotten when it is removed.
func TestPausedNamespaceVanishes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := memapi.New()
		l := newNamespacedOperator(t, server)
		stop := l.operate(server)
		defer stop()
		time.Sleep(time.Minute)
		l.gate.NamespaceGate("a").Set(true)
		time.Sleep(time.Minute)
		l.deleteNamespace("a")
		time.Sleep(time.Minute)
		l.mu.Lock()
		gone := l.forgottenCount
		l.mu.Unlock()
		if gone == 0 {
			t.Error("the objects of the removed namespace must be forgotten")
		}
		l.createNamespace("a")
		l.gate.NamespaceGate("a").Set(false)
		time.Sleep(time.Minute)
		l.requireCalls("after another namespace of the name was created", "/n1", "a/in-a", "a/in-a", "b/in-b")
	})
}
