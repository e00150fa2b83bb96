package kopf

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Adopt prepares objects, or lists of them, to be created as children: it adds an owner reference and the labels of the
// object, and sets a missing namespace and generateName. It does not write to the cluster. Kopf: adopt.
//
//	if err := c.Adopt(pod); err != nil {
//		return err
//	}
//	return c.Client.Create(ctx, pod)
//
// A repeated call creates another object if the name is generated. A child that the object cannot own, by its namespace
// or scope, is an error, and a warning under [AsKopf].
func (c *Change[T]) Adopt(children ...any) error {
	if c.byHand() {
		return errByHand
	}
	owner := &unstructured.Unstructured{Object: c.latest()}
	if err := c.children.Adopt(owner, children, c.Client, c.log); err != nil {
		return fmt.Errorf("object %s: %w", c.name(), err)
	}
	return nil
}

// Adopt is [Change.Adopt].
func (r *Task[T]) Adopt(children ...any) error { return r.change.Adopt(children...) }

// Adopt is [Change.Adopt].
func (e *WatchEvent[T]) Adopt(children ...any) error { return e.change.Adopt(children...) }
