package background_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"k8s.io/apimachinery/pkg/types"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/go-logr/logr/funcr"

	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/internal/jsontext"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/background"
)

// TestDeletion shows when background handlers hold an object that is being deleted, and when they still have to end.
func TestDeletion(t *testing.T) {
	broken := errors.New("the filter is broken")
	for name, tc := range map[string]struct {
		reason      string
		before      func(w *stoppableHarness)
		holds, busy bool
	}{
		"Running": {"a running daemon must end first", func(*stoppableHarness) {}, true, true},
		"Ending": {"a daemon that was stopped is busy until it ends",
			func(w *stoppableHarness) { w.stop(background.Unmatched) }, true, true},
		"Stopped": {"a daemon that the deletion has stopped still holds the object",
			func(w *stoppableHarness) { w.remove(); w.letGo() }, true, false},
		"Done": {"a daemon that has returned does not hold the object", func(w *stoppableHarness) { w.letGo() }, false,
			false},
		"Unmatched": {
			"a handler that does not match does not hold the object",
			func(w *stoppableHarness) { w.letGo(); synctest.Wait(); w.forget(); w.filterErr = errUnmatched }, false,
			false,
		},
		"Broken": {
			"a filter that fails does not hold the object",
			func(w *stoppableHarness) { w.letGo(); synctest.Wait(); w.forget(); w.filterErr = broken }, false, false,
		},
		"NeverSeen": {
			"an unseen object is held, because another process may have run its daemon",
			func(w *stoppableHarness) { w.letGo(); synctest.Wait(); w.forget() }, true, false,
		},
		"Abandoned": {
			"an abandoned daemon holds the object, but does not have to end",
			func(w *stoppableHarness) { w.StopAll(background.Exiting); w.until(minute) }, true, false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newStubbornHarness(t, background.KindSettings{}, handlers.BackgroundOptions{Daemon: true})
				synctest.Wait()
				tc.before(w)
				synctest.Wait()
				if holds, busy := w.remove(); holds != tc.holds || busy != tc.busy {
					t.Errorf("%s: got held %v, busy %v; want %v, %v", tc.reason, holds, busy, tc.holds, tc.busy)
				}
				if said := strings.Join(w.logLines, "\n"); strings.Contains(said, broken.Error()) {
					t.Errorf("the filter's error is in the log of the supervisor, not of the pass: %s", said)
				}
			})
		})
	}
}

// forget reports the object as gone.
func (w *harness) forget() { w.ForgetObject("u") }

// TestDeletionAsksEachHandler shows that every handler is evaluated, even after one that does not hold the object.
func TestDeletionAsksEachHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		matching := func(id string, matches bool, err error) *handlers.Handler {
			return &handlers.Handler{
				ID: id, Family: handlers.Background, Background: &handlers.BackgroundOptions{Daemon: true},
				Call:    succeed,
				Filters: []handlers.Filter{func(context.Context, *cause.Cause) (bool, error) { return matches, err }},
			}
		}
		w := newHarness(t, matching("broken", true, errors.New("broken")), matching("other", false, nil),
			matching("wanted", true, nil))
		var said []string
		log := funcr.New(func(_, line string) { said = append(said, line) }, funcr.Options{})
		ctx := logf.IntoContext(t.Context(), log)
		holds, busy, err := w.Supervise(ctx, &cause.Cause{Object: jsontext.NewFromValue(w.body), Deleting: true})
		if !holds || busy || err != nil {
			t.Errorf("got held %v, busy %v, error %v; the last handler holds the object, and nothing runs", holds, busy,
				err)
		}
		if len(said) != 1 || !strings.Contains(said[0], `"handler"="broken"`) {
			t.Errorf("want one log line, about the handler whose filter fails: %q", said)
		}
		_, _, err = w.Supervise(t.Context(), &cause.Cause{Object: jsontext.NewFromValue(w.body)})
		if err == nil || !strings.Contains(err.Error(), "broken") {
			t.Errorf("without a deletion, a filter that fails must be an error: got %v", err)
		}
	})
}

// TestNoHandlers shows that without handlers, Supervise holds nothing and needs no object.
func TestNoHandlers(t *testing.T) {
	w := newHarness(t)
	for _, deleting := range []bool{false, true} {
		holds, busy, err := w.Supervise(t.Context(), &cause.Cause{Deleting: deleting})
		if holds || busy || err != nil {
			t.Errorf("deleting %v: got held %v, busy %v, error %v, want nothing", deleting, holds, busy, err)
		}
	}
}

// TestForgetting shows that a gone object is forgotten when its last handler has ended, and not before.
func TestForgetting(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		act    func(w *stoppableHarness)
		want   []string
	}{
		"Running": {
			"the daemon of a gone object is stopped, and its object is forgotten afterwards",
			func(w *stoppableHarness) { w.forget(); w.until(second); w.letGo() },
			[]string{
				"0s call 0", "0s asked RESOURCE_DELETED", "10ms cancelled RESOURCE_DELETED,DAEMON_CANCELLED",
				"1s look", "1s forgotten",
			},
		},
		"Done": {
			"after a daemon that has returned, the caller knows the end: event handlers may still need the memo",
			func(w *stoppableHarness) { w.letGo(); w.until(second); w.forget() },
			[]string{"0s call 0", "0s look"},
		},
		"Stopped": {
			"an object without running or finished handlers has nothing to forget",
			func(w *stoppableHarness) {
				w.stop(background.Unmatched)
				synctest.Wait()
				w.letGo()
				w.until(second)
				w.runPass()
				w.forget()
			},
			[]string{"0s call 0", "0s asked FILTERS_MISMATCH", "0s look"},
		},
		"Unmatched": {
			"an object without matching handlers has nothing to forget",
			func(w *stoppableHarness) {
				w.letGo()
				w.until(second)
				w.forget()
				w.filterErr = errUnmatched
				w.runPass()
				w.forget()
			},
			[]string{"0s call 0", "0s look"},
		},
		"Twice": {
			"a second Forget does nothing",
			func(w *stoppableHarness) { w.forget(); w.forget(); w.until(second); w.letGo() },
			[]string{
				"0s call 0", "0s asked RESOURCE_DELETED", "10ms cancelled RESOURCE_DELETED,DAEMON_CANCELLED",
				"1s look", "1s forgotten",
			},
		},
		"Exiting": {
			"an exit waits for the daemon of a gone object as for others",
			func(w *stoppableHarness) {
				w.forget()
				w.until(second)
				w.StopAndWait(background.Exiting)
				w.note("gone")
				w.letGo()
			},
			[]string{
				"0s call 0", "0s asked RESOURCE_DELETED", "10ms cancelled RESOURCE_DELETED,DAEMON_CANCELLED",
				"6s abandoned", "6s gone", "6s forgotten",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var w *stoppableHarness
				w = newStubbornHarness(t, background.KindSettings{
					OnForgotten: func(types.NamespacedName, types.UID) { w.note("forgotten") },
				}, handlers.BackgroundOptions{Daemon: true})
				synctest.Wait()
				tc.act(w)
				w.want(minute, tc.want...)
			})
		})
	}
}

// TestEventAfterTheEnd shows that a late event of a gone object starts its daemon again, and that the end of the former
// daemon does not count as the end of the new one.
func TestEventAfterTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w *harness
		obey := func(ctx context.Context, _ *handlers.Invocation) error {
			<-ctx.Done()
			w.note("ended")
			return nil
		}
		w = newHarness(t, backgroundHandler(&w, handlers.BackgroundOptions{Daemon: true}, obey))
		w.runPass()
		synctest.Wait()
		w.forget()
		w.runPass()
		w.until(second)
		w.runPass()
		w.want(minute, "0s call 0", "0s call 0", "10ms ended", "10ms look")
	})
}
