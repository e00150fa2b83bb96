package reconcilers_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers"
	"github.com/kopf-runtime/kopf-runtime/storage/diffbase"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
	"github.com/kopf-runtime/kopf-runtime/test/growth"
)

// operatorProcess starts and stops operators in one process.
type operatorProcess struct {
	t          *testing.T
	server     *memapi.Server
	connection *watchCounter
	people     client.Client

	changes, events, daemons, ticks atomic.Int64
	running                         atomic.Int64 // daemons that have not returned
}

func newOperatorProcess(t *testing.T) *operatorProcess {
	t.Helper()
	server := memapi.New()
	people, err := client.New(memapi.Config(server), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return &operatorProcess{t: t, server: server, connection: &watchCounter{RoundTripper: server}, people: people}
}

func (e *operatorProcess) manager() ctrl.Manager {
	e.t.Helper()
	m, err := ctrl.NewManager(memapi.Config(e.connection), ctrl.Options{
		Metrics: metricsserver.Options{BindAddress: "0"}, Logger: logr.Discard(),
	})
	if err != nil {
		e.t.Fatal(err)
	}
	return m
}

// add sets up an operator with handlers of several families, in two namespaces.
func (e *operatorProcess) add(m ctrl.Manager, name string) {
	e.t.Helper()
	_, filling := byName()
	count := func(calls *atomic.Int64) handlers.Func {
		return func(context.Context, *handlers.Invocation) error {
			calls.Add(1)
			return nil
		}
	}
	watching := &handlers.Handler{ID: "e", Family: handlers.Watching, Call: count(&e.events)}
	err := reconcilers.SetupWithManager(m, reconcilers.Options{
		Settings: reconcilers.Settings{
			Name:      name,
			Prefix:    name,
			Finalizer: name + "/finalizer",
			Diffbase:  diffbase.Annotations{Prefix: name},
			Progress:  progress.Annotations{Prefix: name},
		},
		Namespaces: named("a", "b"),
		Registrations: []reconcilers.Registration{
			registrationFor(e.t, "secrets", filling), registrationFor(e.t, "configmaps", watching),
			registrationFor(e.t, "configmaps", counting("c", cause.Create, &e.changes)),
			registrationFor(e.t, "configmaps", timer("t", time.Second, count(&e.ticks))),
			registrationFor(e.t, "configmaps", daemon("d", handlers.BackgroundOptions{}, func(
				ctx context.Context, _ *handlers.Invocation,
			) error {
				e.daemons.Add(1)
				e.running.Add(1)
				defer e.running.Add(-1)
				<-ctx.Done()
				return nil
			})),
		},
	})
	if err != nil {
		e.t.Fatal(err)
	}
}

// run starts the managers, waits until they have handled an object in each namespace, and stops them.
func (e *operatorProcess) run(round int, managers ...ctrl.Manager) {
	e.t.Helper()
	ctx, stop := context.WithCancel(e.t.Context())
	ended := make(chan error, len(managers))
	for _, m := range managers {
		go func() { ended <- m.Start(ctx) }()
	}
	people := directClient{e.people, e.t}
	for _, namespace := range []string{"a", "b"} {
		made := people.object("ConfigMap", fmt.Sprint("made-in-", round))
		made.SetNamespace(namespace)
		if err := e.people.Create(e.t.Context(), made); err != nil {
			e.t.Fatal(err)
		}
	}
	time.Sleep(10 * time.Second)
	if open := e.connection.open.Load(); open == 0 {
		e.t.Errorf("round %d: a running operator must have open watches", round)
	}
	stop()
	for range managers {
		if err := <-ended; err != nil {
			e.t.Errorf("round %d: the manager: %v", round, err)
		}
	}
	synctest.Wait()
}

// TestOperatorsOfOneProcessLeaveNothing shows that operators with their own or a shared manager can be started and
// stopped repeatedly: they leave no goroutines, watches or claims.
func TestOperatorsOfOneProcessLeaveNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-all runs it")
	}
	const operators, rounds = 4, 5
	synctest.Test(t, func(t *testing.T) {
		e := newOperatorProcess(t)
		var goroutines []int
		for round := range rounds {
			goroutines = append(goroutines, growth.Goroutines())
			managers := []ctrl.Manager{e.manager(), e.manager(), e.manager()}
			for i, name := range []string{"one.example.org", "two.example.org", "three.example.org"} {
				e.add(managers[i], name)
			}
			e.add(managers[2], "four.example.org") // the second operator of the manager
			e.run(round, managers...)
			if open := e.connection.open.Load(); open != 0 {
				t.Errorf("round %d: %d watches are open, want 0", round, open)
			}
			for i, m := range managers {
				if reconcilers.Claimed(m) {
					t.Errorf("round %d: the claims of the operators of manager %d must be removed", round, i)
				}
			}
			if left := e.running.Load(); left != 0 {
				t.Errorf("round %d: %d daemons are running, want 0", round, left)
			}
		}
		goroutines = append(goroutines, growth.Goroutines())
		if first, last := goroutines[0], goroutines[rounds]; last > first {
			t.Errorf("%d goroutines before, %d after, want no more: %v", first, last, goroutines)
		}
		if want, got := int64(2*operators*rounds), e.changes.Load(); got != want {
			t.Errorf("%d creations were handled, want %d: two in each round, by each operator", got, want)
		}
		if e.events.Load() == 0 || e.daemons.Load() == 0 || e.ticks.Load() == 0 {
			t.Errorf("%d events, %d daemons, %d ticks, want some of each", e.events.Load(), e.daemons.Load(),
				e.ticks.Load())
		}
	})
}
