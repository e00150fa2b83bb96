package background_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/background"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/kind"
)

// TestHandlersBesideEachOther shows that handlers of one object are independent: a pass does not start a running or
// finished handler again.
func TestHandlersBesideEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w *harness
		daemon := func(id string, lasts *handlers.BackgroundOptions, call handlers.Func) *handlers.Handler {
			return &handlers.Handler{
				ID: id, Family: handlers.Background, Background: lasts,
				Call: func(ctx context.Context, c *handlers.Invocation) error { w.note(id); return call(ctx, c) },
			}
		}
		ends := &handlers.BackgroundOptions{Daemon: true}
		over := make(chan struct{})
		w = newHarness(t,
			daemon("returns", ends, succeed),
			daemon("goes on", ends, func(_ context.Context, call *handlers.Invocation) error {
				<-call.LiveObject.Stopping()
				w.note("stops")
				<-over
				return nil
			}))
		t.Cleanup(func() { close(over) })
		w.runPass()
		w.until(second)
		for range 2 {
			if !w.runPass() {
				t.Error("the object must be held for the daemon that goes on")
			}
		}
		w.mu.Lock()
		calls := len(w.journal)
		w.mu.Unlock()
		if calls != 3 { // with the pass after the end of the first one
			t.Errorf("want one call of each daemon: %v", w.journal)
		}
		if holds, busy := w.remove(); !holds || !busy {
			t.Errorf("got held %v, busy %v; the deletion must wait for the daemon that goes on", holds, busy)
		}
		synctest.Wait()
		w.mu.Lock()
		defer w.mu.Unlock()
		if last := w.journal[len(w.journal)-1]; last != "1s stops" {
			t.Errorf("got %v, want the second daemon to be stopped", w.journal)
		}
	})
}

// TestWithoutAController shows that a kind whose controller does not run still holds its objects, but starts no
// handlers and keeps nothing of the objects.
func TestWithoutAController(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s *stoppableHarness
		s = newStoppableHarness(t, background.KindSettings{
			OnForgotten: func(types.NamespacedName, types.UID) { s.note("forgotten") },
		}, handlers.BackgroundOptions{Daemon: true}, nil)
		s.StopAndWait(background.Exiting)
		if !s.runPass() {
			t.Error("a matching daemon must hold the object")
		}
		s.filterErr = errUnmatched
		if s.runPass() {
			t.Error("without a matching handler, the object must not be held")
		}
		s.forget()
		s.want(minute)
	})
}

// TestStartsOnHeldObjectsOnly shows that no handler starts before the object has the finalizer, and that the finalizer
// is requested.
func TestStartsOnHeldObjectsOnly(t *testing.T) {
	for name, b := range map[string]handlers.BackgroundOptions{
		"Daemon": {Daemon: true}, "Timer": {Interval: time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var w *harness
				w = newHarness(t, backgroundHandler(&w, b, func(_ context.Context, call *handlers.Invocation) error {
					if b.Daemon {
						<-call.LiveObject.Stopping()
					}
					return nil
				}))
				w.lacksFinalizer = true
				for range 2 {
					if !w.runPass() {
						t.Error("the finalizer must be requested before the handler starts")
					}
					w.want(time.Minute)
				}
				w.lacksFinalizer = false
				w.runPass()
				w.want(time.Minute, "2m0s call 0")
				// another client removed the finalizer: the handler goes on while it is added again
				w.lacksFinalizer = true
				if !w.runPass() {
					t.Error("the object must still be held")
				}
				w.want(time.Minute)
			})
		})
	}
}

// TestLeaveFinalizers shows that with LeaveFinalizers, as in Kopf, the finalizer of a daemon that has returned is
// checked at the next event only.
func TestLeaveFinalizers(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		end    func(*stoppableHarness)
		want   []string
	}{
		"ByItself": {"a daemon that returns by itself does not request a pass", (*stoppableHarness).letGo, nil},
		"Stopped": {
			"a stopped daemon requests a pass, because the deletion waits for it",
			func(s *stoppableHarness) { s.stop(background.Deleted); synctest.Wait(); s.letGo() },
			[]string{"0s asked RESOURCE_DELETED", "0s look"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStubbornHarness(
					t,
					with(kind.Settings{LeaveFinalizers: true}),
					handlers.BackgroundOptions{Daemon: true},
				)
				synctest.Wait()
				tc.end(s)
				s.want(minute, append([]string{"0s call 0"}, tc.want...)...)
				for range 2 {
					if name == "ByItself" && s.runPass() {
						t.Error("a daemon that has returned must not hold the object")
					}
				}
				s.want(minute)
			})
		})
	}
}

// TestInitialDelays shows that an initial delay that fails counts as none and is logged.
func TestInitialDelays(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		err    error
		delay  time.Duration
		want   string
	}{
		"Some":     {"the initial delay is waited for", nil, 5 * second, "5s call 0"},
		"Negative": {"a negative delay counts as none", nil, -5 * second, "0s call 0"},
		"Broken": {"a daemon whose initial delay fails starts at once", errors.New("no delay"), 5 * second,
			"0s call 0"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStoppableHarness(t, background.KindSettings{}, handlers.BackgroundOptions{
					Daemon: true, InitialDelay: after(tc.delay, tc.err),
				}, nil)
				s.runPass()
				s.want(minute, tc.want)
				if said := strings.Contains(strings.Join(s.logLines, "\n"), "Initial delay"); said != (tc.err != nil) {
					t.Errorf("%s: the failure is logged: %v", tc.reason, said)
				}
			})
		})
	}
}
