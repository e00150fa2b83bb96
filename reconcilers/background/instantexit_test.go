package background_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/background"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/settings"
)

// A handler that ends at the first word is not cancelled, however long that may take by the settings.
func TestInstantExit(t *testing.T) {
	for name, tc := range map[string]struct {
		reason   string
		patience time.Duration
		backoff  time.Duration
		ends     string
	}{
		"Default":  {"practically at once", 0, 0, "10ms cancelled"},
		"TooShort": {"it is cancelled when the time is up", 100 * time.Millisecond, 0, "100ms cancelled"},
		"Enough":   {"it ends by its own insight", 500 * time.Millisecond, 0, "400ms ended"},
		"WithBackoff": {
			"the backoff begins with the first word, too", 100 * time.Millisecond, 300 * time.Millisecond,
			"300ms cancelled",
		},
		"BeyondABackoff": {"nothing is done before", 350 * time.Millisecond, 300 * time.Millisecond, "350ms cancelled"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var w *world
				linger := func(ctx context.Context, call *handlers.Invocation) error {
					<-call.Live.Stopping()
					select {
					case <-ctx.Done():
						w.note("cancelled")
					case <-time.After(400 * time.Millisecond):
						w.note("ended")
					}
					return nil
				}
				w = newWorldWith(
					t, with(settings.Settings{InstantExit: tc.patience}),
					spawning(&w, handlers.Background{Daemon: true, CancelBackoff: tc.backoff}, linger),
				)
				w.attend()
				w.want(0, "0s call 0")
				w.Stop(background.Exiting)
				w.want(time.Minute, tc.ends)
			})
		})
	}
}
