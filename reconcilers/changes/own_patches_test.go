package changes_test

import (
	"context"
	"strings"
	"testing"

	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

// isPressed matches objects whose annotation is set like a button.
func isPressed(c *cause.Cause) bool {
	return at(c.Body(), "metadata", "annotations", "sync") == "update"
}

// ofButton makes a handler react to updates of this annotation.
func ofButton(h *handlers.Handler) {
	h.Field, h.NeedsChange = diff.Path{"metadata", "annotations", "sync"}, true
	h.To = func(value any, _ bool) bool { return value == "update" }
}

// TestButtonIsPressedAgain shows that a handler that resets the annotation by its own patch is called each time that
// it is set (deviation D-handled-patch).
func TestButtonIsPressedAgain(t *testing.T) {
	release := patches("done", "metadata", "annotations", "sync")
	press := func(w *harness, p *process) {
		w.set("update", "metadata", "annotations", "sync")
		p.settle()
	}
	withFilter := []*handlers.Handler{onCreate("h", release, when(isPressed)), onUpdate("h", release, when(isPressed))}
	scenarios := map[string]scenario{}
	for name, tc := range map[string]struct {
		reason   string
		handlers []*handlers.Handler
		isKopf   bool
		want     []string
	}{
		"Filter": {
			"the own patch counts as handled, so each press is a change", withFilter, false,
			[]string{"0s create h", "0s update h", "0s update h"},
		},
		"FilterOfKopf": {
			"in Kopf, the state that the handler saw counts as handled, so the second press is not a change",
			withFilter, true,
			[]string{"0s create h"},
		},
		"UpdateOfField": {
			"an object without the field is remembered, so the new field is an update",
			[]*handlers.Handler{onUpdate("h", release, ofButton)}, false,
			[]string{"0s update h", "0s update h", "0s update h"},
		},
		"UpdateOfFieldOfKopf": {
			"in Kopf, an object is first noticed with the field, which is its creation",
			[]*handlers.Handler{onUpdate("h", release, ofButton)}, true, nil,
		},
		"BesideAnother": {
			"with another handler, the own patch is a further update",
			[]*handlers.Handler{
				onCreate("h", release, when(isPressed)), onUpdate("h", release, when(isPressed)), onUpdate("all", ok),
			}, false, []string{
				"0s update h", "0s update all", "0s update all",
				"0s update h", "0s update all", "0s update all",
				"0s update h", "0s update all", "0s update all",
			},
		},
	} {
		scenarios[name] = scenario{tc.reason, func(w *harness) {
			p := w.start(tc.handlers...)
			p.handling.KopfTexts = tc.isKopf
			told := readJournal(p)
			p.settle()
			w.calls()
			for range 3 {
				press(w, p)
			}
			w.wantCalls(tc.reason, tc.want...)
			isNoted := strings.Contains(strings.Join(told.EntryLines("ns", "obj"), "\n"), "unnoticed")
			if isNoted != tc.isKopf {
				t.Errorf("the journal mentions an unnoticed state: %v, want %v", isNoted, tc.isKopf)
			}
		}}
	}
	run(t, scenarios)
}

// TestEditBesideTheOwnPatch shows that an edit by another client during the call is noticed, even if the object does
// not match the filters any more after the handler's own patch.
func TestEditBesideTheOwnPatch(t *testing.T) {
	run(t, map[string]scenario{"Edited": {"an edit during the call is handled with the next press", func(w *harness) {
		release := patches("done", "metadata", "annotations", "sync")
		p := w.start(
			onUpdate("h", release, when(isPressed)), onCreate("h", all(release, takesEdit(w)), when(isPressed)),
		)
		w.set("update", "metadata", "annotations", "sync")
		p.settle()
		w.calls()
		w.set("update", "metadata", "annotations", "sync")
		p.settle()
		w.wantCalls("pressed again", "0s update h")
		w.wantHandled("with the edit", "edited")
	}}})
}

// takesEdit returns a handler during which another client edits the object.
func takesEdit(w *harness) handlers.Func {
	return func(context.Context, *handlers.Invocation) error {
		w.set("edited", "spec", "field")
		return nil
	}
}
