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

	"github.com/kopf-runtime/kopf-runtime/reconcilers/background"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/cause"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/storage/jsontext"
)

// Whether the object is held on its deletion, and whether that is for handlers that have not ended yet.
func TestDeletion(t *testing.T) {
	broken := errors.New("the filter is broken")
	for name, tc := range map[string]struct {
		reason      string
		before      func(w *stubborn)
		holds, busy bool
	}{
		"Running": {"the daemon has to end first", func(*stubborn) {}, true, true},
		"Ending":  {"it is the end that counts", func(w *stubborn) { w.stop(background.Unmatched) }, true, true},
		"Stopped": {"it matches, though it does not run", func(w *stubborn) { w.remove(); w.letGo() }, true, false},
		"Done":    {"it has nothing to do any more", func(w *stubborn) { w.letGo() }, false, false},
		"Unmatched": {
			"it is of no interest any more",
			func(w *stubborn) { w.letGo(); synctest.Wait(); w.forget(); w.unmatched = errUnmatched }, false, false,
		},
		"Broken": {
			"nobody can tell whether it would be of interest, and nothing runs",
			func(w *stubborn) { w.letGo(); synctest.Wait(); w.forget(); w.unmatched = broken }, false, false,
		},
		"NeverSeen": {
			"a daemon of another operator may have left something",
			func(w *stubborn) { w.letGo(); synctest.Wait(); w.forget() }, true, false,
		},
		"Abandoned": {
			"nobody waits for what has not ended in time",
			func(w *stubborn) { w.Stop(background.Exiting); w.until(minute) }, true, false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newStubbornWorld(t, background.Settings{}, handlers.Background{Daemon: true})
				synctest.Wait()
				tc.before(w)
				synctest.Wait()
				if holds, busy := w.remove(); holds != tc.holds || busy != tc.busy {
					t.Errorf("%s: got held %v, busy %v; want %v, %v", tc.reason, holds, busy, tc.holds, tc.busy)
				}
				if said := strings.Join(w.said, "\n"); strings.Contains(said, broken.Error()) {
					t.Errorf("it is said in the log of the pass: %s", said)
				}
			})
		})
	}
}

// forget has the object gone.
func (w *world) forget() { w.Forget("u") }

// A handler that does not hold the object says nothing about those after it.
func TestDeletionAsksEachHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		matching := func(id string, matches bool, err error) *handlers.Handler {
			return &handlers.Handler{
				ID: id, Family: handlers.Spawning, Background: &handlers.Background{Daemon: true}, Call: succeed,
				Filters: []handlers.Filter{func(context.Context, *cause.Cause) (bool, error) { return matches, err }},
			}
		}
		w := newWorld(t, matching("broken", true, errors.New("broken")), matching("other", false, nil),
			matching("wanted", true, nil))
		var said []string
		log := funcr.New(func(_, line string) { said = append(said, line) }, funcr.Options{})
		ctx := logf.IntoContext(t.Context(), log)
		holds, busy, err := w.Supervise(ctx, &cause.Cause{Object: jsontext.Of(w.body), Deleting: true})
		if !holds || busy || err != nil {
			t.Errorf("got held %v, busy %v, error %v; the last handler wants it, and nothing runs", holds, busy, err)
		}
		if len(said) != 1 || !strings.Contains(said[0], `"handler"="broken"`) {
			t.Errorf("that a filter fails is said of the one that does: %q", said)
		}
		_, _, err = w.Supervise(t.Context(), &cause.Cause{Object: jsontext.Of(w.body)})
		if err == nil || !strings.Contains(err.Error(), "broken") {
			t.Errorf("an object that lives has to wait for a filter that fails: got the error %v", err)
		}
	})
}

// Without handlers there is nothing to look at.
func TestNoHandlers(t *testing.T) {
	w := newWorld(t)
	for _, deleting := range []bool{false, true} {
		holds, busy, err := w.Supervise(t.Context(), &cause.Cause{Deleting: deleting})
		if holds || busy || err != nil {
			t.Errorf("deleting %v: got held %v, busy %v, error %v", deleting, holds, busy, err)
		}
	}
}

// An object that is gone is forgotten when its last handler has ended, and not before.
func TestForgetting(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		act    func(w *stubborn)
		want   []string
	}{
		"Running": {
			"its daemon is asked to end, and knows why",
			func(w *stubborn) { w.forget(); w.until(second); w.letGo() },
			[]string{
				"0s call 0", "0s asked RESOURCE_DELETED", "10ms cancelled RESOURCE_DELETED,DAEMON_CANCELLED",
				"1s look", "1s forgotten",
			},
		},
		"Done": {
			"that its daemon is done is of no more use",
			func(w *stubborn) { w.letGo(); w.until(second); w.forget() },
			[]string{"0s call 0", "0s look", "1s forgotten"},
		},
		"Stopped": {
			"without a handler that runs, nothing is known of it",
			func(w *stubborn) {
				w.stop(background.Unmatched)
				synctest.Wait()
				w.letGo()
				w.until(second)
				w.attend()
				w.forget()
			},
			[]string{"0s call 0", "0s asked FILTERS_MISMATCH", "0s look"},
		},
		"Unmatched": {
			"nothing was ever known of it",
			func(w *stubborn) {
				w.letGo()
				w.until(second)
				w.forget()
				w.unmatched = errUnmatched
				w.attend()
				w.forget()
			},
			[]string{"0s call 0", "0s look", "1s forgotten"},
		},
		"Twice": {
			"there is nothing to forget",
			func(w *stubborn) { w.letGo(); w.until(second); w.forget(); w.forget() },
			[]string{"0s call 0", "0s look", "1s forgotten"},
		},
		"Exiting": {
			"the operator waits for it as for others",
			func(w *stubborn) { w.forget(); w.until(second); w.End(background.Exiting); w.note("gone"); w.letGo() },
			[]string{
				"0s call 0", "0s asked RESOURCE_DELETED", "10ms cancelled RESOURCE_DELETED,DAEMON_CANCELLED",
				"6s abandoned", "6s gone", "6s forgotten",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var w *stubborn
				w = newStubbornWorld(t, background.Settings{
					Forgotten: func(types.UID) { w.note("forgotten") },
				}, handlers.Background{Daemon: true})
				synctest.Wait()
				tc.act(w)
				w.want(minute, tc.want...)
			})
		})
	}
}

// A late event of an object that is gone begins anew, and what ends then is not mistaken for what runs.
func TestEventAfterTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w *world
		obey := func(ctx context.Context, _ *handlers.Invocation) error {
			<-ctx.Done()
			w.note("ended")
			return nil
		}
		w = newWorld(t, spawning(&w, handlers.Background{Daemon: true}, obey))
		w.attend()
		synctest.Wait()
		w.forget()
		w.attend()
		w.until(second)
		w.attend()
		w.want(minute, "0s call 0", "0s call 0", "10ms ended", "10ms look")
	})
}
