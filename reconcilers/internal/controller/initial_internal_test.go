package controller

import (
	"testing"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/compact"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/memory"
)

// listed notes the object as part of the first listing of an informer.
func (w *world) listed() *compact.CachedObject {
	obj := w.controller.cachedObject(request.NamespacedName)
	w.controller.NoteListed(obj)
	return obj
}

// TestInitialMarks shows which objects are resumed, and that no memory of them remains afterwards.
func TestInitialMarks(t *testing.T) {
	tests := map[string]struct {
		reason string
		own    []*handlers.Handler
		play   func(w *world)
	}{
		"NobodyResumes": {
			reason: "a kind without resume handlers keeps no memory of listed objects",
			own:    []*handlers.Handler{creating("c")},
			play: func(w *world) {
				w.listed()
				w.requireForgotten("after the listing")
			},
		},
		"SeenLater": {
			reason: "an object that appears after the start is not resumed", own: []*handlers.Handler{
				creating("c"), resuming("r"),
			},
			play: func(w *world) {
				w.pass()
				w.deliver()
				w.pass()
				w.requireCalls("a new object", "c")
			},
		},
		"ListedAgain": {
			reason: "an object that is listed again after a restart of its kind is not resumed",
			own: []*handlers.Handler{
				creating("c"), resuming("r"),
			},
			play: func(w *world) {
				w.pass()
				w.deliver()
				w.controller.objects.EndRun([]any{w.controller.cachedObject(request.NamespacedName)})
				w.listed()
				w.pass()
				w.requireCalls("a new object that is listed again", "c")
				w.requireForgotten("after the second listing")
			},
		},
		"NeverHandled": {
			reason: "an object that exists at the start, but was never handled, is created", own: []*handlers.Handler{
				creating("c"), resuming("r"),
			},
			play: func(w *world) {
				w.listed()
				w.pass()
				w.deliver()
				w.pass()
				w.requireCalls("created, not resumed", "c")
				w.requireForgotten("after its creation")
			},
		},
		"Resumed": {
			reason: "an object that exists at the start is resumed once",
			own:    []*handlers.Handler{creating("c"), resuming("r")},
			play: func(w *world) {
				w.pass()
				w.deliver()
				w.controller.objects = memory.NewObjects() // another process
				w.controller.objects.BeginRun(true)
				w.listed()
				w.pass()
				w.deliver()
				w.pass()
				w.edit(`{"metadata":{"labels":{"a":"b"}}}`)
				w.deliver()
				w.pass()
				w.requireCalls("in two processes", "c", "r")
				w.deliver()
				w.pass()
				w.requireForgotten("after its resumption")
			},
		},
		"DeletedBeforeItsTurn": {
			reason: "an object that is deleted before its first pass leaves no memory and no call",
			own:    []*handlers.Handler{creating("c"), resuming("r")},
			play: func(w *world) {
				w.listed()
				w.object = nil
				w.deliver()
				w.pass()
				w.requireForgotten("after the deletion")
				w.requireCalls("without a handler")
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			defer explain(t, tc.reason)
			tc.play(newWorld(t, tc.own...))
		})
	}
}
