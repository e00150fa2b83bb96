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
	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/execution"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers"
)

// TestHandlersDuringTheExit shows how long an exit waits for a running handler, which takes 20 seconds. The exit begins
// after 8 seconds.
func TestHandlersDuringTheExit(t *testing.T) {
	tests := map[string]struct {
		reason  string
		timeout time.Duration
		want    string
		took    time.Duration
	}{
		"Default": {"by default, a running handler has 2 seconds", 0, "0s begin; 10s exiting", 2 * time.Second},
		"Longer": {"with a long timeout, the whole pass is finished", time.Hour, "0s begin; 20s end; 20s next",
			12 * time.Second},
		"Shorter": {"a handler is interrupted when the exit timeout is over", time.Second, "0s begin; 9s exiting",
			time.Second},
		"Immediately": {"with a negative timeout, the handler is interrupted at once", -1, "0s begin; 8s exiting", 0},
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
					registrationFor(t, "configmaps", slow),
					registrationFor(t, "configmaps", next),
				)
				time.Sleep(time.Second)
				j.startTime = time.Now()
				newDirectClient(t, server).create("ConfigMap", "one")
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

// TestExitInTheGraceOfAPause shows that an exit during the grace of a pause waits no longer than any exit.
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
		"Change": {"a change handler has the exit timeout",
			&handlers.Handler{ID: "h", Reason: cause.Create, Call: slow},
			2 * time.Second, execution.ErrExiting},
		"Event": {"an event handler has the exit timeout",
			&handlers.Handler{ID: "h", Family: handlers.Watching, Call: slow},
			2 * time.Second, execution.ErrExiting},
		"Tick": {"a running tick ends at once", timer("h", 5*time.Minute, slow), 0, execution.ErrExiting},
		"Daemon": {"a daemon has ended in the pause already", daemon("h", handlers.BackgroundOptions{}, slow), 0,
			execution.ErrPaused},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server, gate := memapi.New(), &reconcilers.Gate{}
				newDirectClient(t, server).create("ConfigMap", "c")
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
					registrationFor(t, "configmaps", tc.handler),
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
