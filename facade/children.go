package kopf

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/kopf-runtime/kopf-runtime/facade/hierarchies"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/logging"
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
// A child that is not an object; one of another namespace, or a cluster-scoped one of an object with a namespace: the
// garbage collector would delete it. Declare it by [Change.Ensure]. Under [AsKopf], that is a warning.
func (c *Change[T]) Adopt(children ...any) error {
	if c.byHand() {
		return errByHand
	}
	owner := &unstructured.Unstructured{Object: c.latest()}
	var options []hierarchies.AdoptOption
	if c.children != nil && c.children.LikeKopf {
		options = append(options, hierarchies.LikeKopf(func(err error) {
			logging.Warn(c.log, "Adopting a child that the object cannot own", "reason", err.Error())
		}))
	} else if err := c.checkScopes(owner.GetNamespace(), children); err != nil {
		return fmt.Errorf("object %s: %w", c.name(), err)
	}
	if c.children != nil && c.children.NoLabels {
		options = append(options, hierarchies.NoLabels())
	}
	owner = c.withoutParentLabel(owner)
	if err := hierarchies.Adopt(owner, children, options...); err != nil {
		return fmt.Errorf("object %s: %w", c.name(), err)
	}
	return nil
}

// withoutParentLabel leaves out the label by which Ensure knows its children: a parent that has it itself must not pass
// it on to objects that Ensure has not declared.
func (c *Change[T]) withoutParentLabel(owner *unstructured.Unstructured) *unstructured.Unstructured {
	if c.children == nil || c.children.LikeKopf {
		return owner
	}
	labels := owner.GetLabels()
	if _, labelled := labels[c.children.Label()]; !labelled {
		return owner
	}
	owner = owner.DeepCopy()
	delete(labels, c.children.Label())
	owner.SetLabels(labels)
	return owner
}

// checkScopes reports cluster-scoped children of an object in this namespace, which cannot own them. Kinds that the
// cluster or the scheme does not know are left to the creation.
func (c *Change[T]) checkScopes(namespace string, given any) error {
	if namespace == "" || c.Client == nil {
		return nil
	}
	for object, err := range hierarchies.Objects(given) {
		if err != nil {
			return err
		}
		if raw, ok := object.(map[string]any); ok {
			object = &unstructured.Unstructured{Object: raw}
		}
		child, ok := object.(client.Object)
		if !ok {
			continue
		}
		kind, err := apiutil.GVKForObject(child, c.Client.Scheme())
		if err != nil {
			continue // nothing is known about it
		}
		mapping, err := c.Client.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
		if err == nil && mapping.Scope.Name() == meta.RESTScopeNameRoot {
			return fmt.Errorf("adopting %s %q: an object with a namespace cannot own a cluster-scoped one, and the "+
				"garbage collector deletes it: declare it by c.Ensure, or leave the owner out",
				kind.Kind, child.GetName())
		}
	}
	return nil
}

// Adopt makes children of the object before they are created, see [Change.Adopt].
func (r *Task[T]) Adopt(children ...any) error { return r.change.Adopt(children...) }

// Adopt makes children of the object before they are created, see [Change.Adopt].
func (e *WatchEvent[T]) Adopt(children ...any) error { return e.change.Adopt(children...) }
