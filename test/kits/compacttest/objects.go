package compacttest

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kopf-runtime/kopf-runtime/internal/compact"
)

// NewObject returns the object of a body. It panics if the body cannot be encoded.
func NewObject(body map[string]any) *compact.CachedObject {
	object, err := compact.NewFromBody(body)
	if err != nil {
		panic(err)
	}
	return object
}

// ChangedCopy returns a copy of the object to which the change was applied. The object itself does not change.
func ChangedCopy(object *compact.CachedObject, change func(*unstructured.Unstructured)) *compact.CachedObject {
	changed, err := object.Unstructured()
	if err != nil {
		panic(err)
	}
	change(changed)
	return NewObject(changed.Object)
}

// DeletingCopy returns a copy of the object whose deletion has been requested.
func DeletingCopy(object *compact.CachedObject) *compact.CachedObject {
	return ChangedCopy(object, func(u *unstructured.Unstructured) {
		u.SetDeletionTimestamp(&metav1.Time{Time: time.Unix(1, 0)})
	})
}
