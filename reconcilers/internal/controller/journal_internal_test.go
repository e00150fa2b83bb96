package controller

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
	"github.com/kopf-runtime/kopf-runtime/test/kits/journaltest"
)

// readJournal returns a reader of the journal in which the controller records why it holds the object.
func (w *objectFixture) readJournal() *journaltest.Reader {
	told := journaltest.NewReader(w.t, widgets.GroupKind())
	w.controller.journal = told.Kind
	return told
}

func (w *objectFixture) requireHolds(told *journaltest.Reader, reason string, want ...string) {
	w.t.Helper()
	if d := cmp.Diff(want, told.EntryLines("ns", "a")); d != "" {
		w.t.Errorf("%s: -want, +got:\n%s", reason, d)
	}
}

// TestHolds shows that the journal records why an object is not handled: a defect of the object, or a delay after
// errors.
func TestHolds(t *testing.T) {
	const refused = "hold, an error of the framework: patching example.org/v1 Widget ns/a: out of order"
	for name, tc := range map[string]struct {
		reason string
		play   func(w *objectFixture)
		want   []string
	}{
		"None": {"an object that is handled normally records no hold", func(w *objectFixture) { w.pass() }, nil},
		"Blocked": {
			"a malformed object is held until it changes", func(w *objectFixture) {
				w.edit(`{"metadata":{"annotations":{"` + lastHandledKey + `":"[1]"}}}`)
				w.updateCache()
				w.pass()
				w.pass()
			}, []string{
				"hold, blocked until the object changes: reading the last-handled configuration: malformed " +
					"last-handled configuration in annotation " + lastHandledKey +
					": it is not a json object but a list (2 times)",
			},
		},
		"Throttled": {
			"a refused write holds the object until the delay is over, with one record", func(w *objectFixture) {
				w.writeErr = unavailable()
				w.pass()
				w.pass()
			}, []string{refused + ", until after 1s"},
		},
		"ThrottledLonger": {
			"repeated refusals hold the object for the latest delay", func(w *objectFixture) {
				w.writeErr = unavailable()
				for range 3 {
					time.Sleep(w.pass().RequeueAfter)
				}
			}, []string{refused + ", until after 2s (3 times)"},
		},
		"GivenUp": {
			"without error delays a refusal holds the object until its next event", func(w *objectFixture) {
				w.controller.deps.Settings.ErrorDelays = nil
				w.writeErr = unavailable()
				w.pass()
			}, []string{refused},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newObjectFixture(t, newCreateHandler("c"))
				told := w.readJournal()
				tc.play(w)
				w.requireHolds(told, tc.reason, tc.want...)
			})
		})
	}
}

// TestEventsAreRecorded shows that each event is recorded with the resource version that it brought.
func TestEventsAreRecorded(t *testing.T) {
	w := newObjectFixture(t, newCreateHandler("c"))
	told := w.readJournal()
	seen := w.controller.cachedObject(request.NamespacedName)
	w.controller.NoteEvent("", seen)
	w.edit(`{"spec":{"size":2}}`)
	w.updateCache()
	w.controller.NoteEvent("MODIFIED", w.controller.cachedObject(request.NamespacedName))
	w.controller.NoteEvent("DELETED", w.controller.cachedObject(request.NamespacedName))
	w.requireHolds(told, "listing, edit and deletion", "event LISTED 1", "event MODIFIED 2", "event DELETED 2")
}

// TestJournalOfRedacted shows that the journal does not record error texts of kinds with redacted fields.
func TestJournalOfRedacted(t *testing.T) {
	for name, tc := range map[string]struct {
		reason   string
		redacted []diff.Path
		want     bool
	}{
		"Nothing": {"without redacted fields the error text is recorded", nil, true},
		"Field": {"with a redacted field the error text is not recorded, as it may contain the value",
			[]diff.Path{{"spec", "token"}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			told := journaltest.NewReader(t, widgets.GroupKind())
			deps := &Dependencies{Journal: told.Journal}
			own := []*adapters.HandlerChain{adapters.New(&handlers.Handler{ID: "a", RedactedPaths: tc.redacted}, nil)}
			deps.JournalOf(widgets, own).ForObject(request.NamespacedName, "u").RecordHold("why", unavailable(),
				time.Time{})
			lines := told.EntryLines("ns", "a")
			if len(lines) != 1 || strings.Contains(lines[0], "out of order") != tc.want {
				t.Errorf("%s: got %q", tc.reason, lines)
			}
		})
	}
}
