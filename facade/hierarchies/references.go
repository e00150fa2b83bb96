package hierarchies

import (
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

var (
	errNoOwner = errors.New("there is no owner: it is nil")
	errNoKind  = errors.New("the owner does not say its kind, as typed objects that clients have read do not: " +
		"give the option hierarchies.Scheme")
)

// AppendOwnerReference adds an owner reference to the children, so that the garbage collector deletes them with the
// owner. An existing reference to the owner is not changed. An owner with a namespace can only own objects in this
// namespace. Kopf: append_owner_reference.
func AppendOwnerReference(owner client.Object, children any, opts ...ReferenceOption) error {
	reference, err := OwnerReference(owner, opts...)
	if err != nil {
		return fmt.Errorf("appending an owner reference: %w", err)
	}
	return eachObject(children, func(c child) error { return c.appendReference(reference) })
}

// RemoveOwnerReference removes the references to the owner from the children. Kopf: remove_owner_reference.
func RemoveOwnerReference(owner client.Object, children any) error {
	if isNil(owner) {
		return fmt.Errorf("removing an owner reference: %w", errNoOwner)
	}
	return eachObject(children, func(c child) error { return c.removeReference(owner.GetUID()) })
}

// OwnerReference returns the reference by which children refer to the owner. Kopf: build_owner_reference.
func OwnerReference(owner client.Object, opts ...ReferenceOption) (metav1.OwnerReference, error) {
	if isNil(owner) {
		return metav1.OwnerReference{}, errNoOwner
	}
	s := collectOptions(opts)
	kind, err := kindOf(owner, s.scheme)
	if err != nil {
		return metav1.OwnerReference{}, err
	}
	return metav1.OwnerReference{
		APIVersion: kind.GroupVersion().String(), Kind: kind.Kind, Name: owner.GetName(), UID: owner.GetUID(),
		Controller: s.isController, BlockOwnerDeletion: s.blockOwnerDeletion,
	}, nil
}

// ObjectReference returns the reference by which Kubernetes events refer to an object. Kopf: build_object_reference.
func ObjectReference(object client.Object, opts ...ReferenceOption) (corev1.ObjectReference, error) {
	if isNil(object) {
		return corev1.ObjectReference{}, errNoOwner
	}
	kind, err := kindOf(object, collectOptions(opts).scheme)
	if err != nil {
		return corev1.ObjectReference{}, err
	}
	return corev1.ObjectReference{
		APIVersion: kind.GroupVersion().String(), Kind: kind.Kind, Name: object.GetName(), UID: object.GetUID(),
		Namespace: object.GetNamespace(),
	}, nil
}

// kindOf returns the kind in the object, or else the kind of its Go type in the scheme.
func kindOf(object client.Object, scheme *runtime.Scheme) (schema.GroupVersionKind, error) {
	if kind := object.GetObjectKind().GroupVersionKind(); kind.Kind != "" {
		return kind, nil
	}
	if scheme == nil {
		return schema.GroupVersionKind{}, errNoKind
	}
	kind, err := apiutil.GVKForObject(object, scheme)
	if err != nil {
		return kind, fmt.Errorf("finding the kind of the owner: %w", err)
	}
	return kind, nil
}

// appendReference adds the reference, unless the child has one with the same uid. As in Kopf, an existing reference is
// kept even if other fields differ.
func (c child) appendReference(reference metav1.OwnerReference) error {
	if c.typed != nil {
		// Clone the list before the change: append could write into the array of another object.
		held := c.typed.GetOwnerReferences()
		if !slices.ContainsFunc(held, func(r metav1.OwnerReference) bool { return r.UID == reference.UID }) {
			c.typed.SetOwnerReferences(append(slices.Clone(held), reference))
		}
		return nil
	}
	metadata, held, err := c.rawReferences()
	if err != nil || slices.ContainsFunc(held, refersTo(reference.UID)) {
		return err
	}
	// The converter omits nil fields, as Kopf omits nulls.
	encoded, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&reference)
	if err != nil {
		return fmt.Errorf("encoding an owner reference: %w", err)
	}
	metadata["ownerReferences"] = append(slices.Clone(held), any(encoded))
	return nil
}

// removeReference removes all references with the uid.
func (c child) removeReference(uid types.UID) error {
	if c.typed != nil {
		c.typed.SetOwnerReferences(slices.DeleteFunc(
			slices.Clone(c.typed.GetOwnerReferences()), func(r metav1.OwnerReference) bool { return r.UID == uid },
		))
		return nil
	}
	// The list may be shared with another mapping, so the result is a new one.
	metadata, held, err := c.rawReferences()
	if err != nil {
		return err
	}
	// As in Kopf, this leaves an empty list, even where there was none before.
	metadata["ownerReferences"] = slices.DeleteFunc(append([]any{}, held...), refersTo(uid))
	return nil
}

// rawReferences returns the metadata and the owner references of a mapping.
func (c child) rawReferences() (metadata map[string]any, held []any, err error) {
	if metadata, err = c.ensureMetadata(); err != nil {
		return nil, nil, err
	}
	// Null counts as an absent list.
	held, ok := metadata["ownerReferences"].([]any)
	if !ok && metadata["ownerReferences"] != nil {
		return nil, nil, fmt.Errorf("its ownerReferences are a %T, not a list", metadata["ownerReferences"])
	}
	return metadata, held, nil
}

// refersTo returns a predicate for references in a mapping. A malformed reference does not match.
func refersTo(uid types.UID) func(reference any) bool {
	return func(reference any) bool {
		fields, _ := reference.(map[string]any)
		return fields["uid"] == string(uid)
	}
}
