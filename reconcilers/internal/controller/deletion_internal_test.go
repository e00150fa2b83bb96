package controller

import (
	"context"
	"testing"

	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
)

// TestPassOverDeletedObject shows that an object is neither handled nor remembered after its end, at whatever point
// of a pass it disappears.
func TestPassOverDeletedObject(t *testing.T) {
	deleting := func() *handlers.Handler { return &handlers.Handler{ID: "d", Reason: cause.Delete} }
	tests := map[string]struct {
		reason string
		play   func(w *objectFixture, create *handlers.Handler)
	}{
		"NotInTheCache": {
			reason: "a request for an object that is not in the cache does nothing",
			play: func(w *objectFixture, _ *handlers.Handler) {
				w.object = nil
				w.updateCache()
				w.pass()
				w.requireCalls("without an object")
			},
		},
		"DuringItsPass": {
			reason: "a pass over an object that is deleted meanwhile keeps no memory of it",
			play: func(w *objectFixture, create *handlers.Handler) {
				callDuring(create, func() { w.object = nil; w.updateCache() })
				w.pass()
				w.requireForgotten("the deletion was noted during the pass")
			},
		},
		"ReplacedDuringItsPass": {
			reason: "an object that is replaced during its pass is forgotten, and its successor is handled as new",
			play: func(w *objectFixture, create *handlers.Handler) {
				callDuring(create, func() { w.create("u2"); w.updateCache() })
				w.pass()
				w.requireForgotten("the object has another uid")
				w.pass()
				w.requireCalls("after the pass over the successor", "c", "c")
			},
		},
		"NotFoundByAWrite": {
			reason: "an object that a write did not find is not handled again from a stale cache",
			play: func(w *objectFixture, create *handlers.Handler) {
				callDuring(create, func() { w.object = nil })
				w.pass()
				w.pass()
				w.requireCalls("the cache still has the object", "c")
				w.updateCache()
				w.requireForgotten("the deletion reached the cache")
			},
		},
		"NotFoundButChangedLater": {
			reason: "an object that changes after a write did not find it is handled again",
			play: func(w *objectFixture, create *handlers.Handler) {
				held := w.object
				callDuring(create, func() { w.object = nil })
				w.pass()
				w.object = held
				callDuring(create, func() {})
				w.edit(`{"spec":{"size":2}}`)
				w.updateCache()
				w.pass()
				w.requireCalls("the object still exists", "c", "c")
			},
		},
		"Released": {
			reason: "an object that was released by a write is not handled again, not even if the cache shows " +
				"edits from before it",
			play: func(w *objectFixture, _ *handlers.Handler) {
				w.pass()
				w.updateCache()
				w.edit(`{"metadata":{"deletionTimestamp":"2026-01-01T00:00:00Z"}}`)
				w.updateCache()
				stale := w.object
				w.pass()
				if w.object != nil {
					w.t.Fatalf("the object was not released: %v", w.object)
				}
				w.object = stale
				w.edit(`{"metadata":{"labels":{"edited":"meanwhile"}}}`)
				w.updateCache()
				w.pass()
				w.requireCalls("the cache shows an edit from before the release", "c", "d")
				w.object = nil
				w.updateCache()
				w.requireForgotten("the deletion reached the cache")
			},
		},
		"BackUnderItsUID": {
			reason: "an object that a stale list brings back after its deletion is handled",
			play: func(w *objectFixture, _ *handlers.Handler) {
				w.controller.NoteDeleted(w.controller.cachedObject(request.NamespacedName))
				w.pass()
				w.requireCalls("the cache still has the object", "c")
			},
		},
		"ReleasedAndToldOfDuringTheLook": {
			reason: "an object that is deleted between its cache lookup and its memory lookup is not handled",
			play: func(w *objectFixture, _ *handlers.Handler) {
				w.pass()
				w.updateCache()
				w.edit(`{"metadata":{"deletionTimestamp":"2026-01-01T00:00:00Z"}}`)
				w.updateCache()
				w.pass()
				looks := 0
				w.controller.store = changingStore{w.cache, nothing, func() {
					if looks++; looks == 1 {
						w.updateCache()
					}
				}}
				w.pass()
				w.requireCalls("the cache had the object a moment ago", "c", "d")
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			defer explain(t, tc.reason)
			create := newCreateHandler("c")
			tc.play(newObjectFixture(t, create, deleting()), create)
		})
	}
}

// callDuring makes the handler call a function before it returns.
func callDuring(h *handlers.Handler, happen func()) {
	noted := h.Call
	h.Call = func(ctx context.Context, c *handlers.Invocation) error {
		err := noted(ctx, c)
		happen()
		return err
	}
}

// TestPassOverAnObjectThatGoesDuringItsEvents shows that event handlers can run while the object leaves the cache: the
// informer notifies of a deletion after the removal, and a slow index function delays it further.
func TestPassOverAnObjectThatGoesDuringItsEvents(t *testing.T) {
	watch := &handlers.Handler{ID: "e", Family: handlers.Watching}
	w := newObjectFixture(t, watch, newCreateHandler("c"))
	cached := w.controller.cachedObject(request.NamespacedName)
	callDuring(watch, func() {
		if err := w.cache.Delete(cached); err != nil {
			t.Error(err)
		}
	})
	w.controller.NoteEvent("ADDED", cached)
	w.pass()
	w.requireCalls("the cache does not have the object any more", "e")
}

// TestWritesToAnObjectThatWentBeforeItsEvents shows that event handlers still get the last event of an object that has
// left the cache, but that their changes are not written: the informer removes the object before it notifies of the
// deletion.
func TestWritesToAnObjectThatWentBeforeItsEvents(t *testing.T) {
	watch := &handlers.Handler{ID: "e", Family: handlers.Watching, Call: func(
		_ context.Context, c *handlers.Invocation,
	) error {
		return c.Writer.AddTransform(func(body map[string]any) error { body["spec"] = "seen"; return nil })
	}}
	w := newObjectFixture(t, watch)
	cached := w.controller.cachedObject(request.NamespacedName)
	w.controller.NoteEvent("MODIFIED", cached)
	if err := w.cache.Delete(cached); err != nil {
		t.Fatal(err)
	}
	w.pass()
	w.requireCalls("the event was delivered", "e")
	if w.writes > 0 {
		t.Errorf("%d writes to a deleted object", w.writes)
	}
}
