package facadetest

import (
	"slices"
	"time"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/codec"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/patching"
)

// Edit changes the object after a call, as somebody else would: the next call is one for an update, unless the creation
// is not finished yet. What the handlers have written is still there, and so is what the operator remembers. Before the
// first call, change the object itself.
func (c *Change[T]) Edit(change func(object T)) {
	c.trial.edit(c.trial.subject.codec.Transform(change, codec.Lists{}))
	c.turn()
}

// Delete has somebody delete the object after a call: the next call is one for the deletion. Children that it cannot
// own are deleted from the [Client] when its handler is finished, as Kubernetes would not; others stay, as there is no
// garbage collection. Before the first call, pass [Reason].
func (c *Change[T]) Delete() {
	c.trial.edit(func(body map[string]any) error {
		metadata, _ := body["metadata"].(map[string]any)
		metadata["deletionTimestamp"] = time.Now().UTC().Format(time.RFC3339)
		held, _ := metadata["finalizers"].([]any)
		for _, name := range []any{finalizer, keeping} {
			if !slices.Contains(held, name) {
				held = append(slices.Clip(held), name)
			}
		}
		metadata["finalizers"] = held
		return nil
	})
	c.turn()
}

// turn finds out what the next call is for.
func (c *Change[T]) turn() {
	switch found := c.trial.detect(&handlers.Handler{}); found {
	case kopf.ReasonCreate, kopf.ReasonUpdate, kopf.ReasonDelete:
		c.reason = found
	}
}

// edit changes the object after a call.
func (t *trial[T]) edit(transform patching.Transform) {
	if t.cluster == nil {
		mistake("%s: the function was not called yet: change the object that the constructor gets", t.by)
	}
	if err := t.cluster.edit(transform); err != nil {
		mistake("%s: editing the object: %v", t.by, err)
	}
}
