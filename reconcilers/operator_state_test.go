package reconcilers_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers"
	decisions "github.com/kopf-runtime/kopf-runtime/reconcilers/journal"
)

// kind returns a kind that an operator serves in two namespaces.
func kind(name, resource string, handlers ...decisions.RegisteredHandler) decisions.ServedKind {
	return decisions.ServedKind{
		Kind: name, Version: "v1", Resource: resource, Namespaced: true, Namespaces: []string{"default", "prod"},
		Handlers: handlers, Background: map[string]int{},
	}
}

// TestStanding shows how an operator reports its present state: whether it is running or paused, the served kinds with
// their namespaces, handlers and background handlers, and the handlers whose kinds are absent.
func TestStanding(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kept, gate, server := decisions.New(decisions.RetentionLimits{}), &reconcilers.Gate{}, memapi.New()
		gate.Set(true)
		newDirectClient(t, server).createMany("Secret", "s", 2)
		creating := func(id string) *handlers.Handler {
			return &handlers.Handler{ID: id, Reason: cause.Create, Call: succeed}
		}
		_, filling := byName()
		o := reconcilers.Options{Gate: gate, Journal: kept, Namespaces: named("prod", "default")}
		complete(&o, registrationFor(t, "configmaps", creating("c")), registrationFor(t, "comets", creating("absent")),
			registrationFor(t, "configmaps", &handlers.Handler{ID: "r", Family: handlers.Condition}),
			registrationFor(t, "comets", &handlers.Handler{ID: "r", Family: handlers.Condition}),
			registrationFor(t, "category=sky", creating("absent")), registrationFor(t, "secrets", filling),
			registrationFor(t, "secrets", daemon("d", handlers.BackgroundOptions{}, untilStopped)),
			registrationFor(t, "secrets", timer("t", time.Hour, succeed)),
			registrationFor(t, "namespaces", creating("n")))
		m := managerOn(t, server, logr.Discard())
		if err := reconcilers.SetupWithManager(m, o); err != nil {
			t.Fatal(err)
		}
		wantStanding(t, kept, "before the start, with unknown kinds", decisions.OperatorState{Paused: true})
		stop := startManager(t, m)
		maps, secrets := kind("ConfigMap", "configmaps", decisions.RegisteredHandler{ID: "c", Purpose: "create"}), kind(
			"Secret", "secrets", decisions.RegisteredHandler{ID: "by-name", Purpose: "index"},
			decisions.RegisteredHandler{ID: "d", Purpose: "daemon"},
			decisions.RegisteredHandler{ID: "t", Purpose: "timer"},
		)
		spaces := kind("Namespace", "namespaces", decisions.RegisteredHandler{ID: "n", Purpose: "create"})
		spaces.Namespaced, spaces.Namespaces = false, []string{""}
		want := decisions.OperatorState{
			Running: true, Paused: true, Kinds: []decisions.ServedKind{maps, secrets, spaces},
			AbsentHandlers: []decisions.AbsentHandler{
				{Handler: "absent", Selector: "comets"}, {Handler: "absent", Selector: `category "sky"`},
			},
		}
		wantStanding(t, kept, "paused from the start", want)
		gate.Set(false)
		time.Sleep(time.Minute)
		want.Paused, want.Kinds[1].Background = false, map[string]int{"running": 2, "waiting": 2}
		wantStanding(t, kept, "after the pause", want)
		stop()
		want.Running, want.Kinds[1].Background = false, map[string]int{}
		wantStanding(t, kept, "after the exit", want)
	})
}

// TestStandingOfWaiters shows that the state contains the indexed kinds that handlers wait for.
func TestStandingOfWaiters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kept := decisions.New(decisions.RetentionLimits{})
		_, filling := byName()
		stop := operateAll(t, delayLists(memapi.New(), "secrets", steady(time.Hour)),
			reconcilers.Options{Journal: kept},
			registrationFor(t, "secrets", filling))
		defer stop()
		time.Sleep(time.Minute)
		if d := cmp.Diff([]string{"secrets"}, kept.OperatorState().UnlistedResources); d != "" {
			t.Errorf("-want, +got:\n%s", d)
		}
	})
}

// startManager starts the manager, waits a minute, and returns a function that stops it.
func startManager(t *testing.T, m ctrl.Manager) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- m.Start(ctx) }()
	time.Sleep(time.Minute)
	return func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the manager: %v", err)
		}
	}
}

// wantStanding compares the state that an operator reports.
func wantStanding(t *testing.T, of *decisions.Journal, when string, want decisions.OperatorState) {
	t.Helper()
	want.Operator = "coming.example.org"
	if d := cmp.Diff(want, of.OperatorState(), cmpopts.IgnoreUnexported(decisions.ServedKind{})); d != "" {
		t.Errorf("%s: -want, +got:\n%s", when, d)
	}
}
