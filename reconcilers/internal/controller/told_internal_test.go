package controller

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/journal/journaltest"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

// holding has the controller tell a journal why it holds the object.
func (w *world) holding() *journaltest.Reader {
	told := journaltest.NewReader(w.t, widgets.GroupKind())
	w.controller.journal = told.Kind
	return told
}

func (w *world) wantHeld(told *journaltest.Reader, reason string, want ...string) {
	w.t.Helper()
	if d := cmp.Diff(want, told.Lines("ns", "a")); d != "" {
		w.t.Errorf("%s: -want, +got:\n%s", reason, d)
	}
}

// What keeps an object from being handled is told: what is wrong with it, or how long it is throttled.
func TestHolds(t *testing.T) {
	const refused = "hold, an error of the framework: patching example.org/v1 Widget ns/a: out of order"
	for name, tc := range map[string]struct {
		reason string
		play   func(w *world)
		want   []string
	}{
		"None": {"there is nothing to be told", func(w *world) { w.pass() }, nil},
		"Blocked": {
			"it takes a change of the object, and no time", func(w *world) {
				w.edit(`{"metadata":{"annotations":{"` + handled + `":"[1]"}}}`)
				w.deliver()
				w.pass()
				w.pass()
			}, []string{
				"hold, blocked until the object changes: reading the last-handled configuration: malformed " +
					"last-handled configuration in annotation " + handled +
					": it is not a json object but a list (2 times)",
			},
		},
		"Throttled": {
			"it is tried again after the delay, and nothing is to be told meanwhile", func(w *world) {
				w.refuse = unavailable()
				w.pass()
				w.pass()
			}, []string{refused + ", until after 1s"},
		},
		"ThrottledLonger": {
			"it is tried again after the last of several", func(w *world) {
				w.refuse = unavailable()
				for range 3 {
					time.Sleep(w.pass().RequeueAfter)
				}
			}, []string{refused + ", until after 2s (3 times)"},
		},
		"GivenUp": {
			"it is tried again with the next event", func(w *world) {
				w.controller.deps.Settings.ErrorDelays = nil
				w.refuse = unavailable()
				w.pass()
			}, []string{refused},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, creating("c"))
				told := w.holding()
				tc.play(w)
				w.wantHeld(told, tc.reason, tc.want...)
			})
		})
	}
}

// Events are told with the version that they have brought, by the object that was there.
func TestSeenIsTold(t *testing.T) {
	w := newWorld(t, creating("c"))
	told := w.holding()
	seen := w.controller.cached(request.NamespacedName)
	w.controller.Seen("", seen)
	w.edit(`{"spec":{"size":2}}`)
	w.deliver()
	w.controller.Seen("MODIFIED", w.controller.cached(request.NamespacedName))
	w.controller.Seen("DELETED", w.controller.cached(request.NamespacedName))
	w.wantHeld(told, "each of them", "event LISTED 1", "event MODIFIED 2", "event DELETED 2")
}

// What handlers want to be kept secret is not told.
func TestJournalOfRedacted(t *testing.T) {
	for name, tc := range map[string]struct {
		reason   string
		redacted []diff.Path
		want     bool
	}{
		"Nothing": {"all may be told", nil, true},
		"Field":   {"the text of an error may have its value", []diff.Path{{"spec", "token"}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			told := journaltest.NewReader(t, widgets.GroupKind())
			deps := &Dependencies{Journal: told.Journal}
			own := []*adapters.Handler{adapters.New(&handlers.Handler{ID: "a", Redacted: tc.redacted}, nil)}
			deps.JournalOf(widgets, own).Object(request.NamespacedName, "u").Hold("why", unavailable(), time.Time{})
			lines := told.Lines("ns", "a")
			if len(lines) != 1 || strings.Contains(lines[0], "out of order") != tc.want {
				t.Errorf("%s: got %q", tc.reason, lines)
			}
		})
	}
}
