package controller

import (
	"testing"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/source"
)

// Ticks need no worker, and what is being deleted has workers of its own: both hang on the priority.
func TestPrioritiesOfRequests(t *testing.T) {
	const deleted = `{"metadata":{"deletionTimestamp":"2026-01-01T00:00:00Z","finalizers":["f"]}}`
	for name, c := range map[string]struct {
		reason  string
		handler string
		becomes string // what is done to the object before
		want    int
	}{
		"Tick":           {"of a timer", "t", `{}`, source.PriorityTimer},
		"Change":         {"of an object that stays", "", `{}`, source.PriorityChange},
		"Deletion":       {"of one that goes", "", deleted, source.PriorityDeletion},
		"TickOfDeletion": {"of a timer still", "t", deleted, source.PriorityTimer},
	} {
		t.Run(name, func(t *testing.T) {
			defer explain(t, c.reason)
			w := newWorld(t, creating("c"))
			waiting := w.queue()
			w.edit(c.becomes)
			w.deliver()
			w.controller.Enqueue(request.NamespacedName, c.handler, 0)
			if _, priority, _ := waiting.GetWithPriority(); priority != c.want {
				t.Errorf("priority %d, want %d", priority, c.want)
			}
		})
	}
}

// What is left to be done for an object that is gone belongs to its deletion.
func TestPriorityOfWhatIsGone(t *testing.T) {
	if got := priorityOf(nil, source.PriorityChange); got != source.PriorityDeletion {
		t.Errorf("priority %d", got)
	}
}
