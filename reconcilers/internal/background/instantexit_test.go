package background_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/background"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/kind"
)

// TestInstantExit shows that a handler that ends soon after the stop signal is not cancelled, even if the settings
// allow a long time.
func TestInstantExit(t *testing.T) {
	for name, tc := range map[string]struct {
		reason   string
		patience time.Duration
		backoff  time.Duration
		ends     string
	}{
		"Default": {"by default, the context is cancelled after 10 milliseconds", 0, 0, "10ms cancelled"},
		"TooShort": {"a handler that needs more than the instant exit is cancelled", 100 * time.Millisecond, 0,
			"100ms cancelled"},
		"Enough": {"a handler that returns within the instant exit is not cancelled", 500 * time.Millisecond, 0,
			"400ms ended"},
		"WithBackoff": {
			"a longer backoff includes the instant exit", 100 * time.Millisecond, 300 * time.Millisecond,
			"300ms cancelled",
		},
		"BeyondABackoff": {"an instant exit longer than the backoff postpones the cancellation", 350 * time.Millisecond,
			300 * time.Millisecond, "350ms cancelled"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var w *harness
				linger := func(ctx context.Context, call *handlers.Invocation) error {
					<-call.LiveObject.Stopping()
					select {
					case <-ctx.Done():
						w.note("cancelled")
					case <-time.After(400 * time.Millisecond):
						w.note("ended")
					}
					return nil
				}
				w = newHarnessWith(
					t, with(kind.Settings{InstantExit: tc.patience}),
					backgroundHandler(&w, handlers.BackgroundOptions{Daemon: true, CancelBackoff: tc.backoff}, linger),
				)
				w.runPass()
				w.want(0, "0s call 0")
				w.StopAll(background.Exiting)
				w.want(time.Minute, tc.ends)
			})
		})
	}
}
