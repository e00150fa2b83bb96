package changes_test

import (
	"context"
	"strings"
	"testing"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/cause"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

// isPressed is a filter of the annotation that people press as a button.
func isPressed(c *cause.Cause) bool {
	return at(c.Body(), "metadata", "annotations", "sync") == "update"
}

// ofButton makes it an update handler of the annotation.
func ofButton(h *handlers.Handler) {
	h.Field, h.NeedsChange = diff.Path{"metadata", "annotations", "sync"}, true
	h.To = func(value any, _ bool) bool { return value == "update" }
}

// A handler that releases the button by its own patch is called each time that it is pressed
// (deviation D-handled-patch).
func TestButtonIsPressedAgain(t *testing.T) {
	release := patches("done", "metadata", "annotations", "sync")
	press := func(w *world, p *process) {
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
			"the own patch is part of what was handled", withFilter, false,
			[]string{"0s create h", "0s update h", "0s update h"},
		},
		"FilterOfKopf": {
			"what the handler saw is what was handled, so the second press is no change", withFilter, true,
			[]string{"0s create h"},
		},
		"UpdateOfField": {
			"an object without the field is remembered, so the field is an update",
			[]*handlers.Handler{onUpdate("h", release, ofButton)}, false,
			[]string{"0s update h", "0s update h", "0s update h"},
		},
		"UpdateOfFieldOfKopf": {
			"Kopf meets the object when the field comes, which is its creation",
			[]*handlers.Handler{onUpdate("h", release, ofButton)}, true, nil,
		},
		"BesideAnother": {
			"an object that another handler wants follows with its next change",
			[]*handlers.Handler{
				onCreate("h", release, when(isPressed)), onUpdate("h", release, when(isPressed)), onUpdate("all", ok),
			}, false, []string{
				"0s update h", "0s update all", "0s update all",
				"0s update h", "0s update all", "0s update all",
				"0s update h", "0s update all", "0s update all",
			},
		},
	} {
		scenarios[name] = scenario{tc.reason, func(w *world) {
			p := w.start(tc.handlers...)
			p.handling.KopfTexts = tc.isKopf
			told := noting(p)
			p.settle()
			w.calls()
			for range 3 {
				press(w, p)
			}
			w.wantCalls(tc.reason, tc.want...)
			isNoted := strings.Contains(strings.Join(told.Lines("ns", "obj"), "\n"), "unnoticed")
			if isNoted != tc.isKopf {
				t.Errorf("the journal notes that a state is not noticed: %v, want %v", isNoted, tc.isKopf)
			}
		}}
	}
	run(t, scenarios)
}

// An edit by others during the call is still noticed, although the object left the filters by the handler's own patch.
func TestEditBesideTheOwnPatch(t *testing.T) {
	run(t, map[string]scenario{"Edited": {"the handler has not seen the edit", func(w *world) {
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

// takesEdit is a function during which somebody edits the object.
func takesEdit(w *world) handlers.Func {
	return func(context.Context, *handlers.Invocation) error {
		w.set("edited", "spec", "field")
		return nil
	}
}
