package children

import (
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kopf-runtime/kopf-runtime/internal/keys"
)

var errRetainUntilDone = errors.New("it is done and to be retained, so another declaration cannot replace it: choose " +
	"another name, or delete it")

// markRetained names the owner in an annotation of a retained child. The operator never deletes a child with this
// annotation, whatever the records list. An object of the same kind, namespace and name can take the child over.
func (k *Keeper) markRetained(owner, child *unstructured.Unstructured) {
	setAnnotation(child, k.retainedKey(), identityOf(owner).String())
}

// retainedBy returns the owner that markRetained has written; empty for other objects.
func (k *Keeper) retainedBy(object *metav1.PartialObjectMetadata) string {
	return object.Annotations[k.retainedKey()]
}

// retainedKey returns the name of that annotation.
func (k *Keeper) retainedKey() string { return k.Prefix + "/" + keys.RetainedBy }

// isRetainedFor reports whether an owner of the same kind, namespace and name has left the object. The uid is not
// compared, because the owner may have been created again.
func (k *Keeper) isRetainedFor(owner *unstructured.Unstructured, object *metav1.PartialObjectMetadata) bool {
	return object.Labels[k.ParentLabel()] != "" && k.retainedBy(object) == identityOf(owner).String()
}

// isAdoptable reports whether the declaration may apply to the existing object: it is a child of the parent already, or
// the declaration takes over a retained child of a former parent.
func (k *Keeper) isAdoptable(
	parent map[string]any, child declaredChild, object *metav1.PartialObjectMetadata,
) bool {
	owner := &unstructured.Unstructured{Object: parent}
	return k.isChildOf(parent, object) || child.rules.AdoptFormer && k.isRetainedFor(owner, object)
}
