package facade

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kopf-runtime/kopf-runtime/facade/hierarchies"
)

// Adopt makes children of the handled object, before they are created: it is their owner then, so that they are deleted
// with it; those without a name get one that begins with its name, which the API server completes; those without a
// namespace get its namespace; and its labels are theirs beside their own. They are objects, typed or not, and lists,
// slices or iterators of them; nothing is written to the cluster. Package hierarchies has the same for other owners,
// with options, and each of its parts alone. Kopf: adopt.
//
//	pod := &corev1.Pod{Spec: spec}
//	if err := c.Adopt(pod); err != nil {
//		return err
//	}
//	return c.Client.Create(ctx, pod)
//
// A handler is called again if it fails, or if its success could not be written: what it creates under a name that is
// made by the API server would be there twice. Give children names of their own, or remember them in the status.
//
// # Errors
//
// A child that is no object.
func (c *Change[T]) Adopt(children ...any) error {
	if c.byHand() {
		return errByHand
	}
	owner := &unstructured.Unstructured{Object: c.latest()}
	if err := hierarchies.Adopt(owner, children); err != nil {
		return fmt.Errorf("object %s: %w", c.name(), err)
	}
	return nil
}

// Adopt makes children of the object before they are created, see [Change.Adopt].
func (r *Run[T]) Adopt(children ...any) error { return r.change.Adopt(children...) }

// Adopt makes children of the object before they are created, see [Change.Adopt].
func (e *Event[T]) Adopt(children ...any) error { return e.change.Adopt(children...) }
