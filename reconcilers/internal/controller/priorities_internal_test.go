package controller

import (
	"testing"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/source"
)

// TestPrioritiesOfRequests shows that the priority of a request depends on its source and on the deletion of its
// object. Ticks do not need a worker, and deletions have workers of their own.
func TestPrioritiesOfRequests(t *testing.T) {
	const deleted = `{"metadata":{"deletionTimestamp":"2026-01-01T00:00:00Z","finalizers":["f"]}}`
	for name, c := range map[string]struct {
		reason  string
		handler string
		becomes string // the patch before the request
		want    int
	}{
		"Tick":   {"a tick of a timer has its own priority", "t", `{}`, source.PriorityTimer},
		"Change": {"a request without a handler has the priority of changes", "", `{}`, source.PriorityChange},
		"Deletion": {"a request for an object in deletion has the priority of deletions",
			"", deleted, source.PriorityDeletion},
		"TickOfDeletion": {"a tick keeps its priority while the object is deleted", "t", deleted, source.PriorityTimer},
	} {
		t.Run(name, func(t *testing.T) {
			defer explain(t, c.reason)
			w := newObjectFixture(t, newCreateHandler("c"))
			waiting := w.queue()
			w.edit(c.becomes)
			w.updateCache()
			w.controller.Enqueue(request.NamespacedName, c.handler, 0)
			if _, priority, _ := waiting.GetWithPriority(); priority != c.want {
				t.Errorf("priority %d, want %d", priority, c.want)
			}
		})
	}
}

// TestPriorityOfDeletedObject shows that a request for an object that is gone has the priority of deletions.
func TestPriorityOfDeletedObject(t *testing.T) {
	if got := priorityOf(nil, source.PriorityChange); got != source.PriorityDeletion {
		t.Errorf("priority %d", got)
	}
}
