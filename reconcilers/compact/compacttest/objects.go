package compacttest

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/compact"
)

// Of is compact.Of for a body that can be encoded; it panics for others.
func Of(body map[string]any) *compact.Object {
	object, err := compact.Of(body)
	if err != nil {
		panic(err)
	}
	return object
}

// Changed is another object, which differs from a first one by the change.
func Changed(object *compact.Object, change func(*unstructured.Unstructured)) *compact.Object {
	changed, err := object.Unstructured()
	if err != nil {
		panic(err)
	}
	change(changed)
	return Of(changed.Object)
}

// Deleting is the same object when its deletion was asked for.
func Deleting(object *compact.Object) *compact.Object {
	return Changed(object, func(u *unstructured.Unstructured) {
		u.SetDeletionTimestamp(&metav1.Time{Time: time.Unix(1, 0)})
	})
}
