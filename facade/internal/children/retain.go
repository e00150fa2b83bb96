package children

import (
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kopf-runtime/kopf-runtime/storage/keys"
)

var errRetainedDone = errors.New("it is done and to be retained, so another declaration cannot replace it: choose " +
	"another name, or delete it")

// markRetained names the owner in an annotation of a child that survives it: nothing deletes such a child, whatever the
// records say, and an object of the same kind, namespace and name may take it over.
func (k *Keeper) markRetained(owner, child *unstructured.Unstructured) {
	annotate(child, k.retainedKey(), identityOf(owner).String())
}

// retainedBy returns what markRetained has written; empty for other objects.
func (k *Keeper) retainedBy(object *metav1.PartialObjectMetadata) string {
	return object.Annotations[k.retainedKey()]
}

func (k *Keeper) retainedKey() string { return k.Prefix + "/" + keys.RetainedBy }

// isRetainedFor is true if an owner of the same kind, namespace and name has left the object.
func (k *Keeper) isRetainedFor(owner *unstructured.Unstructured, object *metav1.PartialObjectMetadata) bool {
	return object.Labels[k.Label()] != "" && k.retainedBy(object) == identityOf(owner).String()
}

// isAdoptable is true if the object is a child of the parent, or if the declaration takes over what a former parent has
// left.
func (k *Keeper) isAdoptable(
	parent map[string]any, child declared, object *metav1.PartialObjectMetadata,
) bool {
	owner := &unstructured.Unstructured{Object: parent}
	return k.isOf(parent, object) || child.rules.AdoptFormer && k.isRetainedFor(owner, object)
}
