package facade

import (
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

// Result reads what a handler has left in status.<id>, see [Change.SetResult]; the handler may be any one, also of
// another operator. The type is spelled, the rest is inferred: facade.Result[string](c, "provision").
//
// Without such a result, it is an error that errors.Is recognises as [ErrNoResult]. A value that does not fit into V is
// another error.
func Result[V any, T client.Object](c *Change[T], id string) (V, error) {
	var result V
	value, err := c.status(id)
	if err == nil {
		if err = convert(value, &result); err != nil {
			err = plain(err)
		}
	}
	if err != nil {
		return result, fmt.Errorf("reading the result of handler %q of object %s: %w", id, c.name(), err)
	}
	return result, nil
}

// status reads the working copy, which nobody may be changing meanwhile.
func (c *Change[T]) status(id string) (any, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		return nil, errOver
	}
	value, ok := diff.Resolve(c.call.Object, diff.Path{"status", id})
	if !ok || value == nil {
		return nil, ErrNoResult
	}
	return value, nil
}
