package reconcilers_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
	"github.com/kopf-runtime/kopf-runtime/reconcilers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/cause"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
)

// TestHandlersDuringTheExit has a handler that takes 20 seconds when the operator exits after 8.
func TestHandlersDuringTheExit(t *testing.T) {
	tests := map[string]struct {
		reason  string
		timeout time.Duration
		want    string
		took    time.Duration
	}{
		"Default":     {"it has a moment, but not more", 0, "0s begin; 10s exiting", 2 * time.Second},
		"Longer":      {"the pass is done, and no more", time.Hour, "0s begin; 20s end; 20s next", 12 * time.Second},
		"Shorter":     {"its time is over before", time.Second, "0s begin; 9s exiting", time.Second},
		"Immediately": {"nobody wants to wait", -1, "0s begin; 8s exiting", 0},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server, j := memapi.New(), &journal{}
				slow := &handlers.Handler{ID: "slow", Reason: cause.Create,
					Call: func(ctx context.Context, _ *handlers.Invocation) error {
						j.add("begin")
						select {
						case <-ctx.Done():
							if errors.Is(context.Cause(ctx), execution.ErrExiting) {
								j.add("exiting")
							}
						case <-time.After(20 * time.Second):
							j.add("end")
						}
						return ctx.Err()
					}}
				next := &handlers.Handler{ID: "next", Reason: cause.Create,
					Call: func(context.Context, *handlers.Invocation) error { j.add("next"); return nil }}
				stop := operateAll(
					t,
					server,
					reconcilers.Options{Settings: reconcilers.Settings{ExitTimeout: tc.timeout}},
					to(t, "configmaps", slow),
					to(t, "configmaps", next),
				)
				time.Sleep(time.Second)
				j.began = time.Now()
				newPeople(t, server).create("ConfigMap", "one")
				time.Sleep(8 * time.Second)
				began := time.Now()
				stop()
				if took := time.Since(began).Round(time.Second); took != tc.took {
					t.Errorf("%s: the exit took %s, want %s", tc.reason, took, tc.took)
				}
				if d := cmp.Diff(tc.want, j.String()); d != "" {
					t.Errorf("%s: -want, +got:\n%s", tc.reason, d)
				}
			})
		})
	}
}

// Where others take over, two must not handle the same objects: the time for that is that of a pause.
func TestHandlersDuringAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, j, gate := memapi.New(), &journal{}, &reconcilers.Gate{}
		stop := operateAll(
			t,
			server,
			reconcilers.Options{Settings: reconcilers.Settings{ExitTimeout: time.Hour, PauseTimeout: -1}, Gate: gate},
			to(t, "configmaps", &handlers.Handler{ID: "slow", Reason: cause.Create,
				Call: func(ctx context.Context, _ *handlers.Invocation) error {
					<-ctx.Done()
					j.add("told")
					return ctx.Err()
				}}),
		)
		defer stop()
		time.Sleep(time.Second)
		j.began = time.Now()
		newPeople(t, server).create("ConfigMap", "one")
		time.Sleep(8 * time.Second)
		gate.Set(true)
		time.Sleep(time.Second)
		if d := cmp.Diff("8s told", j.String()); d != "" {
			t.Errorf("-want, +got:\n%s", d)
		}
	})
}

// Whoever ends a paused operator waits no longer than for another one: what still runs in the grace of the pause has
// the time of an exit.
func TestExitInTheGraceOfAPause(t *testing.T) {
	slow := func(ctx context.Context, _ *handlers.Invocation) error {
		select {
		case <-ctx.Done():
		case <-time.After(time.Hour):
		}
		return context.Cause(ctx)
	}
	tests := map[string]struct {
		reason  string
		handler *handlers.Handler
		want    time.Duration
		cause   error
	}{
		"Change": {"the exit has its moment", &handlers.Handler{ID: "h", Reason: cause.Create, Call: slow},
			2 * time.Second, execution.ErrExiting},
		"Event": {"as for changes", &handlers.Handler{ID: "h", Family: handlers.Watching, Call: slow},
			2 * time.Second, execution.ErrExiting},
		"Tick":   {"it ends at once", timer("h", 5*time.Minute, slow), 0, execution.ErrExiting},
		"Daemon": {"it was told in the pause", daemon("h", handlers.Background{}, slow), 0, execution.ErrPaused},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server, gate := memapi.New(), &reconcilers.Gate{}
				newPeople(t, server).create("ConfigMap", "c")
				var ended atomic.Value
				call := tc.handler.Call
				tc.handler.Call = func(ctx context.Context, c *handlers.Invocation) error {
					ended.Store(call(ctx, c))
					return nil
				}
				stop := operateAll(
					t,
					server,
					reconcilers.Options{Settings: reconcilers.Settings{PauseTimeout: 10 * time.Minute}, Gate: gate},
					to(t, "configmaps", tc.handler),
				)
				time.Sleep(10 * time.Second)
				gate.Set(true)
				time.Sleep(10 * time.Second)
				began := time.Now()
				stop()
				if took := time.Since(began); took != tc.want {
					t.Errorf("%s: the exit took %s, want %s", tc.reason, took, tc.want)
				}
				if got, _ := ended.Load().(error); !errors.Is(got, tc.cause) {
					t.Errorf("%s: ended by %v, want %v", tc.reason, got, tc.cause)
				}
			})
		})
	}
}
