package compacttest

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/compact"
)

// Of returns the object of a body. It panics if the body cannot be encoded.
func Of(body map[string]any) *compact.Object {
	object, err := compact.Of(body)
	if err != nil {
		panic(err)
	}
	return object
}

// Changed returns a copy of the object to which the change was applied. The object itself does not change.
func Changed(object *compact.Object, change func(*unstructured.Unstructured)) *compact.Object {
	changed, err := object.Unstructured()
	if err != nil {
		panic(err)
	}
	change(changed)
	return Of(changed.Object)
}

// Deleting returns a copy of the object whose deletion has been requested.
func Deleting(object *compact.Object) *compact.Object {
	return Changed(object, func(u *unstructured.Unstructured) {
		u.SetDeletionTimestamp(&metav1.Time{Time: time.Unix(1, 0)})
	})
}
