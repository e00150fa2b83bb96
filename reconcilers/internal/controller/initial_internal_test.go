package controller

import (
	"testing"

	"github.com/kopf-runtime/kopf-runtime/internal/compact"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/memory"
)

// noteListed notes the object as part of the first listing of an informer.
func (w *objectFixture) noteListed() *compact.CachedObject {
	obj := w.controller.cachedObject(request.NamespacedName)
	w.controller.NoteListed(obj)
	return obj
}

// TestInitialMarks shows which objects are resumed, and that no memory of them remains afterwards.
func TestInitialMarks(t *testing.T) {
	tests := map[string]struct {
		reason   string
		handlers []*handlers.Handler
		play     func(w *objectFixture)
	}{
		"NobodyResumes": {
			reason:   "a kind without resume handlers keeps no memory of listed objects",
			handlers: []*handlers.Handler{newCreateHandler("c")},
			play: func(w *objectFixture) {
				w.noteListed()
				w.requireForgotten("after the listing")
			},
		},
		"SeenLater": {
			reason: "an object that appears after the start is not resumed", handlers: []*handlers.Handler{
				newCreateHandler("c"), newResumeHandler("r"),
			},
			play: func(w *objectFixture) {
				w.pass()
				w.updateCache()
				w.pass()
				w.requireCalls("a new object", "c")
			},
		},
		"ListedAgain": {
			reason: "an object that is listed again after a restart of its kind is not resumed",
			handlers: []*handlers.Handler{
				newCreateHandler("c"), newResumeHandler("r"),
			},
			play: func(w *objectFixture) {
				w.pass()
				w.updateCache()
				w.controller.objects.EndRun([]any{w.controller.cachedObject(request.NamespacedName)})
				w.noteListed()
				w.pass()
				w.requireCalls("a new object that is listed again", "c")
				w.requireForgotten("after the second listing")
			},
		},
		"NeverHandled": {
			reason: "an object that exists at the start, but was never handled, is created",
			handlers: []*handlers.Handler{
				newCreateHandler("c"), newResumeHandler("r"),
			},
			play: func(w *objectFixture) {
				w.noteListed()
				w.pass()
				w.updateCache()
				w.pass()
				w.requireCalls("created, not resumed", "c")
				w.requireForgotten("after its creation")
			},
		},
		"Resumed": {
			reason:   "an object that exists at the start is resumed once",
			handlers: []*handlers.Handler{newCreateHandler("c"), newResumeHandler("r")},
			play: func(w *objectFixture) {
				w.pass()
				w.updateCache()
				w.controller.objects = memory.NewObjects() // another process
				w.controller.objects.BeginRun(true)
				w.noteListed()
				w.pass()
				w.updateCache()
				w.pass()
				w.edit(`{"metadata":{"labels":{"a":"b"}}}`)
				w.updateCache()
				w.pass()
				w.requireCalls("in two processes", "c", "r")
				w.updateCache()
				w.pass()
				w.requireForgotten("after its resumption")
			},
		},
		"DeletedBeforeItsTurn": {
			reason:   "an object that is deleted before its first pass leaves no memory and no call",
			handlers: []*handlers.Handler{newCreateHandler("c"), newResumeHandler("r")},
			play: func(w *objectFixture) {
				w.noteListed()
				w.object = nil
				w.updateCache()
				w.pass()
				w.requireForgotten("after the deletion")
				w.requireCalls("without a handler")
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			defer explain(t, tc.reason)
			tc.play(newObjectFixture(t, tc.handlers...))
		})
	}
}
