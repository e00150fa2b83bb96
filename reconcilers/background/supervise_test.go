package background_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/background"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/settings"
)

// Each handler has a life of its own: neither that one goes on, nor that another has ended, starts one anew.
func TestHandlersBesideEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w *world
		daemon := func(id string, lasts *handlers.Background, call handlers.Func) *handlers.Handler {
			return &handlers.Handler{
				ID: id, Family: handlers.Spawning, Background: lasts,
				Call: func(ctx context.Context, c *handlers.Invocation) error { w.note(id); return call(ctx, c) },
			}
		}
		ends := &handlers.Background{Daemon: true}
		over := make(chan struct{})
		w = newWorld(t,
			daemon("returns", ends, succeed),
			daemon("goes on", ends, func(_ context.Context, call *handlers.Invocation) error {
				<-call.Live.Stopping()
				w.note("stops")
				<-over
				return nil
			}))
		t.Cleanup(func() { close(over) })
		w.attend()
		w.until(second)
		for range 2 {
			if !w.attend() {
				t.Error("it is held for the one that goes on")
			}
		}
		w.mu.Lock()
		calls := len(w.journal)
		w.mu.Unlock()
		if calls != 3 { // with the look after the one that has returned
			t.Errorf("want one call of each: %v", w.journal)
		}
		if holds, busy := w.remove(); !holds || !busy {
			t.Errorf("got held %v, busy %v; want it to wait for the one that goes on", holds, busy)
		}
		synctest.Wait()
		w.mu.Lock()
		defer w.mu.Unlock()
		if last := w.journal[len(w.journal)-1]; last != "1s stops" {
			t.Errorf("got %v, want the second one to be told, too", w.journal)
		}
	})
}

// A kind whose controller does not run has its objects held as ever, and starts nothing; nor is anything kept of them.
func TestWithoutAController(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s *stubborn
		s = newStoppableWorld(t, background.Settings{
			Forgotten: func(types.UID) { s.note("forgotten") },
		}, handlers.Background{Daemon: true}, nil)
		s.End(background.Exiting)
		if !s.attend() {
			t.Error("the daemon is for the object, so it has to be held")
		}
		s.unmatched = errUnmatched
		if s.attend() {
			t.Error("no handler is for the object")
		}
		s.forget()
		s.want(minute)
	})
}

// Nothing starts on an object that is not held yet, but the object is to be held for it.
func TestStartsOnHeldObjectsOnly(t *testing.T) {
	for name, b := range map[string]handlers.Background{
		"Daemon": {Daemon: true}, "Timer": {Interval: time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var w *world
				w = newWorld(t, spawning(&w, b, func(_ context.Context, call *handlers.Invocation) error {
					if b.Daemon {
						<-call.Live.Stopping()
					}
					return nil
				}))
				w.unheld = true
				for range 2 {
					if !w.attend() {
						t.Error("the finalizer is requested before the handler starts")
					}
					w.want(time.Minute)
				}
				w.unheld = false
				w.attend()
				w.want(time.Minute, "2m0s call 0")
				w.unheld = true // another client removed the finalizer: the handler goes on while it is added again
				if !w.attend() {
					t.Error("the object is still to be held")
				}
				w.want(time.Minute)
			})
		})
	}
}

// The finalizer is looked after when a daemon has ended by itself, or as in Kopf at the next event.
func TestLeaveFinalizers(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		end    func(*stubborn)
		want   []string
	}{
		"ByItself": {"Kopf waits for an event", (*stubborn).letGo, nil},
		"Stopped": {
			"somebody may wait for that",
			func(s *stubborn) { s.stop(background.Deleted); synctest.Wait(); s.letGo() },
			[]string{"0s asked RESOURCE_DELETED", "0s look"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStubbornWorld(
					t,
					with(settings.Settings{LeaveFinalizers: true}),
					handlers.Background{Daemon: true},
				)
				synctest.Wait()
				tc.end(s)
				s.want(minute, append([]string{"0s call 0"}, tc.want...)...)
				for range 2 {
					if name == "ByItself" && s.attend() {
						t.Error("a daemon that has returned is done, and holds nothing")
					}
				}
				s.want(minute)
			})
		})
	}
}

// A delay that cannot be told is none, and that is said.
func TestInitialDelays(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		err    error
		delay  time.Duration
		want   string
	}{
		"Some":     {"it is waited for", nil, 5 * second, "5s call 0"},
		"Negative": {"that is none", nil, -5 * second, "0s call 0"},
		"Broken":   {"the daemon is needed all the same", errors.New("no delay"), 5 * second, "0s call 0"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStoppableWorld(t, background.Settings{}, handlers.Background{
					Daemon: true, InitialDelay: after(tc.delay, tc.err),
				}, nil)
				s.attend()
				s.want(minute, tc.want)
				if said := strings.Contains(strings.Join(s.said, "\n"), "Initial delay"); said != (tc.err != nil) {
					t.Errorf("%s: it is said: %v", tc.reason, said)
				}
			})
		})
	}
}
