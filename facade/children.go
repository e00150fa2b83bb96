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

// withoutParentLabel removes the label of Ensure's children from the owner. A parent with this label must not pass it
// on to objects that Ensure has not declared.
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

// Adopt is [Change.Adopt].
func (r *Task[T]) Adopt(children ...any) error { return r.change.Adopt(children...) }

// Adopt is [Change.Adopt].
func (e *WatchEvent[T]) Adopt(children ...any) error { return e.change.Adopt(children...) }
