package hierarchies

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Adopt makes the children those of the owner: with a reference to it, a name that begins with its name if they have
// none, its namespace if they have none, and its labels beside their own. In a handler of the owner, c.Adopt is the
// same. An owner with a namespace cannot own what is in another one, nor a Namespace: that is an error. Labels are
// inherited as by [Inherited], and never by Namespaces. Kopf: adopt.
func Adopt(owner client.Object, children any, opts ...AdoptOption) error {
	s := collect(opts)
	paths, err := parse(s.nested)
	if err != nil {
		return fmt.Errorf("adopting: %w", err)
	}
	reference, err := OwnerReference(owner, Scheme(s.scheme))
	if err != nil {
		return fmt.Errorf("adopting: %w", err)
	}
	labels, name, namespace := owner.GetLabels(), owner.GetName(), owner.GetNamespace()
	if name == "" {
		return fmt.Errorf("adopting: %w", errNoName)
	}
	err = eachObject(children, func(c child) error {
		if err := c.checkOwner(namespace, s); err != nil {
			return err
		}
		if err := c.appendReference(reference); err != nil {
			return fmt.Errorf("adopting: %w", err)
		}
		if err := c.setName(name, s); err != nil {
			return err
		}
		if err := c.setNamespace(namespace, s); err != nil {
			return err
		}
		return c.labelAll(c.inherited(labels, s), s.forced, paths)
	})
	if err != nil {
		return err
	}
	return absent(paths)
}

// checkOwner reports a child that an owner in this namespace cannot own.
func (c child) checkOwner(owner string, s settings) error {
	held := c.object()
	elsewhere := held.GetNamespace() != "" && held.GetNamespace() != owner && !s.forced
	if owner == "" || !elsewhere && !c.isNamespace() {
		return nil
	}
	err := fmt.Errorf("adopting %q of namespace %q by an owner of namespace %q: the garbage collector deletes an "+
		"object whose owner is in another namespace: declare it by Ensure in a handler, or leave the owner out",
		held.GetName(), held.GetNamespace(), owner)
	if s.warn != nil {
		s.warn(err)
		return nil
	}
	return err
}

// inherited returns the labels that a child gets from its owner.
func (c child) inherited(labels map[string]string, s settings) map[string]string {
	switch {
	case s.warn != nil && !s.noLabels:
		return labels
	case s.noLabels, c.isNamespace():
		return nil
	}
	return Inherited(labels)
}

// object reads the metadata of the child.
func (c child) object() metav1.Object {
	if c.typed != nil {
		return c.typed
	}
	return &unstructured.Unstructured{Object: c.raw}
}

// isNamespace is true for a Namespace, whose labels are about the security of all that is in it.
func (c child) isNamespace() bool {
	if _, ok := c.whole.(*corev1.Namespace); ok {
		return true
	}
	return c.raw["apiVersion"] == "v1" && c.raw["kind"] == "Namespace"
}
