package facadetest

import (
	"slices"
	"time"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/codec"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/patching"
)

// Edit changes the stored object after a call, like another client. The next call handles an update, or still the
// creation if that is unfinished. The handler's writes and the operator's stored state are kept. Before the first call,
// change the object itself.
func (c *Change[T]) Edit(change func(object T)) {
	c.trial.edit(c.trial.subject.codec.Transform(change, codec.Lists{}))
	c.turn()
}

// Delete deletes the stored object after a call, like another client. The next call handles the deletion. Children that
// the object cannot own are deleted from the [Client] when its handler is finished, because Kubernetes would not delete
// them. Other children stay, as there is no garbage collection. Before the first call, pass [Reason].
func (c *Change[T]) Delete() {
	c.trial.edit(func(body map[string]any) error {
		metadata, _ := body["metadata"].(map[string]any)
		metadata["deletionTimestamp"] = time.Now().UTC().Format(time.RFC3339)
		held, _ := metadata["finalizers"].([]any)
		// Without a finalizer, the API server in memory would remove the object at once, before the handler of the
		// deletion.
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

// turn sets the reason of the next call to the one that an operator detects. It keeps the present reason if the object
// does not differ. The handler is not known here, so its extra fields, such as fields in the status, are not compared.
func (c *Change[T]) turn() {
	switch found := c.trial.detect(&handlers.Handler{}); found {
	case kopf.ReasonCreate, kopf.ReasonUpdate, kopf.ReasonDelete:
		c.reason = found
	}
}

// edit applies a change of another client to the stored object.
func (t *trial[T]) edit(transform patching.Transform) {
	if t.cluster == nil {
		mistake("%s: the function was not called yet: change the object that the constructor gets", t.by)
	}
	if err := t.cluster.edit(transform); err != nil {
		mistake("%s: editing the object: %v", t.by, err)
	}
}
