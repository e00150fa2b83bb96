package controller

import (
	"context"
	"testing"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/cause"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
)

func TestPassOverAnObjectThatGoes(t *testing.T) {
	deleting := func() *handlers.Handler { return &handlers.Handler{ID: "d", Reason: cause.Delete} }
	tests := map[string]struct {
		reason string
		play   func(w *world, create *handlers.Handler)
	}{
		"NotInTheCache": {
			reason: "a request may outlive its object",
			play: func(w *world, _ *handlers.Handler) {
				w.object = nil
				w.deliver()
				w.pass()
				w.wantCalls("there is no object")
			},
		},
		"DuringItsPass": {
			reason: "what a pass wants to keep of an object that went meanwhile is not kept",
			play: func(w *world, create *handlers.Handler) {
				during(create, func() { w.object = nil; w.deliver() })
				w.pass()
				w.wantForgotten("the deletion was told during the pass")
			},
		},
		"ReplacedDuringItsPass": {
			reason: "nor if another object has its name by then, which is a new one",
			play: func(w *world, create *handlers.Handler) {
				during(create, func() { w.create("u2"); w.deliver() })
				w.pass()
				w.wantForgotten("the uid is another one")
				w.pass()
				w.wantCalls("both", "c", "c")
			},
		},
		"NotFoundByAWrite": {
			reason: "what the cache still shows of it is past: it is not handled a second time",
			play: func(w *world, create *handlers.Handler) {
				during(create, func() { w.object = nil })
				w.pass()
				w.pass()
				w.wantCalls("the cache does not know yet", "c")
				w.deliver()
				w.wantForgotten("the cache knows")
			},
		},
		"NotFoundButChangedLater": {
			reason: "an object that goes on changing was found missing by mistake",
			play: func(w *world, create *handlers.Handler) {
				held := w.object
				during(create, func() { w.object = nil })
				w.pass()
				w.object = held
				during(create, func() {})
				w.edit(`{"spec":{"size":2}}`)
				w.deliver()
				w.pass()
				w.wantCalls("it is there", "c", "c")
			},
		},
		"Released": {
			reason: "nothing follows the write that lets an object go, not even if the cache shows edits made " +
				"before it",
			play: func(w *world, _ *handlers.Handler) {
				w.pass()
				w.deliver()
				w.edit(`{"metadata":{"deletionTimestamp":"2026-01-01T00:00:00Z"}}`)
				w.deliver()
				stale := w.object
				w.pass()
				if w.object != nil {
					w.t.Fatalf("it was not let go: %v", w.object)
				}
				w.object = stale
				w.edit(`{"metadata":{"labels":{"edited":"meanwhile"}}}`)
				w.deliver()
				w.pass()
				w.wantCalls("the cache has an edit that was made before the end", "c", "d")
				w.object = nil
				w.deliver()
				w.wantForgotten("the cache knows of the deletion")
			},
		},
		"BackUnderItsUID": {
			reason: "a list may be older than the one before: an object that was told to be gone is there, then",
			play: func(w *world, _ *handlers.Handler) {
				w.controller.Deleted(w.controller.cached(request.NamespacedName))
				w.pass()
				w.wantCalls("the cache has it", "c")
			},
		},
		"ReleasedAndToldOfDuringTheLook": {
			reason: "an object that was found in the cache may be gone, and forgotten, before its memory is looked for",
			play: func(w *world, _ *handlers.Handler) {
				w.pass()
				w.deliver()
				w.edit(`{"metadata":{"deletionTimestamp":"2026-01-01T00:00:00Z"}}`)
				w.deliver()
				w.pass()
				looks := 0
				w.controller.store = moving{w.cache, nothing, func() {
					if looks++; looks == 1 {
						w.deliver()
					}
				}}
				w.pass()
				w.wantCalls("the cache had it a moment ago", "c", "d")
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			defer explain(t, tc.reason)
			create := creating("c")
			tc.play(newWorld(t, create, deleting()), create)
		})
	}
}

// during makes something happen while the function is running.
func during(h *handlers.Handler, happen func()) {
	noted := h.Call
	h.Call = func(ctx context.Context, c *handlers.Invocation) error {
		err := noted(ctx, c)
		happen()
		return err
	}
}

// The informer notifies of a deletion after it has removed the object from the cache: later, if it waits for a slow
// index function. Handlers of events may take as long.
func TestPassOverAnObjectThatGoesDuringItsEvents(t *testing.T) {
	watch := &handlers.Handler{ID: "e", Family: handlers.Watching}
	w := newWorld(t, watch, creating("c"))
	cached := w.controller.cached(request.NamespacedName)
	during(watch, func() {
		if err := w.cache.Delete(cached); err != nil {
			t.Error(err)
		}
	})
	w.controller.Seen("ADDED", cached)
	w.pass()
	w.wantCalls("the cache does not have it any more", "e")
}

// The informer removes an object from the cache before it tells of the deletion, so a pass may deliver the last change
// of an object without knowing its end: what is to be written then is for nobody.
func TestWritesToAnObjectThatWentBeforeItsEvents(t *testing.T) {
	watch := &handlers.Handler{ID: "e", Family: handlers.Watching, Call: func(
		_ context.Context, c *handlers.Invocation,
	) error {
		return c.Writes.Remember(func(body map[string]any) error { body["spec"] = "seen"; return nil })
	}}
	w := newWorld(t, watch)
	cached := w.controller.cached(request.NamespacedName)
	w.controller.Seen("MODIFIED", cached)
	if err := w.cache.Delete(cached); err != nil {
		t.Fatal(err)
	}
	w.pass()
	w.wantCalls("the event has happened", "e")
	if w.writes > 0 {
		t.Errorf("%d writes to an object that is gone", w.writes)
	}
}
