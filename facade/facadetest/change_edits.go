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
	c.trial.editObject(c.trial.subject.codec.Transform(change, codec.Lists{}))
	c.updateReason()
}

// Delete deletes the stored object after a call, like another client. The next call handles the deletion. Children that
// the object cannot own are deleted from the [Client] when its handler is finished, because Kubernetes would not delete
// them. Other children stay, as there is no garbage collection. Before the first call, pass [Reason].
func (c *Change[T]) Delete() {
	c.trial.editObject(func(body map[string]any) error {
		metadata, _ := body["metadata"].(map[string]any)
		metadata["deletionTimestamp"] = time.Now().UTC().Format(time.RFC3339)
		held, _ := metadata["finalizers"].([]any)
		// Without a finalizer, the API server in memory would remove the object at once, before the handler of the
		// deletion.
		for _, name := range []any{finalizer, keepFinalizer} {
			if !slices.Contains(held, name) {
				held = append(slices.Clip(held), name)
			}
		}
		metadata["finalizers"] = held
		return nil
	})
	c.updateReason()
}

// updateReason sets the reason of the next call to the one that an operator detects. It keeps the present reason if the
// object does not differ. The handler is not known here, so its extra fields, such as fields in the status, are not
// compared.
func (c *Change[T]) updateReason() {
	switch found := c.trial.detectReason(&handlers.Handler{}); found {
	case kopf.ReasonCreate, kopf.ReasonUpdate, kopf.ReasonDelete:
		c.reason = found
	}
}

// editObject applies a change of another client to the stored object.
func (t *trial[T]) editObject(transform patching.Transform) {
	if t.cluster == nil {
		panicMisuse("%s: the function was not called yet: change the object that the constructor gets", t.constructor)
	}
	if err := t.cluster.editObject(transform); err != nil {
		panicMisuse("%s: editing the object: %v", t.constructor, err)
	}
}
