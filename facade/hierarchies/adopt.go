package hierarchies

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Adopt prepares objects to become children of the owner: it adds an owner reference, names and namespaces where they
// are missing, and labels of the owner. In a handler of the owner, c.Adopt does the same. Adopt returns an error for a
// Namespace, or a child in another namespace, if the owner has a namespace. [Inherited] selects the labels; Namespaces
// inherit none. Kopf: adopt.
func Adopt(owner client.Object, children any, opts ...AdoptOption) error {
	s := collectOptions(opts)
	paths, err := parsePaths(s.nestedPaths)
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
		return c.labelWithNested(c.inheritedLabels(labels, s), s.isForced, paths)
	})
	if err != nil {
		return err
	}
	return missingPathsError(paths)
}

// checkOwner returns an error if an owner in the namespace owner cannot own the child. The garbage collector looks for
// the owner in the namespace of the child, does not find it, and deletes the child. A cluster-scoped owner can own any
// object.
func (c child) checkOwner(owner string, s settings) error {
	held := c.metaObject()
	// With Forced, setNamespace moves the child into the namespace of the owner later, so the present one does not
	// matter.
	elsewhere := held.GetNamespace() != "" && held.GetNamespace() != owner && !s.isForced
	if owner == "" || !elsewhere && !c.isNamespace() {
		return nil
	}
	err := fmt.Errorf("adopting %q of namespace %q by an owner of namespace %q: the garbage collector deletes an "+
		"object whose owner is in another namespace: declare it by Ensure in a handler, or leave the owner out",
		held.GetName(), held.GetNamespace(), owner)
	// LikeKopf: Kopf adopts such children, so the problem is only reported.
	if s.warn != nil {
		s.warn(err)
		return nil
	}
	return err
}

// inheritedLabels returns the labels that the child gets from its owner. LikeKopf passes all labels on, as Kopf does,
// even to Namespaces.
func (c child) inheritedLabels(labels map[string]string, s settings) map[string]string {
	switch {
	case s.warn != nil && !s.noLabels:
		return labels
	case s.noLabels, c.isNamespace():
		return nil
	}
	return Inherited(labels)
}

// metaObject returns an accessor for the metadata of the child, which may be a mapping.
func (c child) metaObject() metav1.Object {
	if c.typed != nil {
		return c.typed
	}
	return &unstructured.Unstructured{Object: c.raw}
}

// isNamespace reports whether the child is a Namespace. Labels of a Namespace affect every object in it, such as its
// pod security level, so it must not inherit them.
func (c child) isNamespace() bool {
	if _, ok := c.object.(*corev1.Namespace); ok {
		return true
	}
	return c.raw["apiVersion"] == "v1" && c.raw["kind"] == "Namespace"
}
