package v1

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
)

// DeepCopy returns a deep copy of the object.
func (e *KopfExample) DeepCopy() *KopfExample {
	c := &KopfExample{TypeMeta: e.TypeMeta, Spec: e.Spec}
	e.ObjectMeta.DeepCopyInto(&c.ObjectMeta)
	c.Spec.Items = slices.Clone(e.Spec.Items)
	c.Status.CreateFn, c.Status.UpdateFn = copied(e.Status.CreateFn), copied(e.Status.UpdateFn)
	return c
}

func copied[T any](of *T) *T {
	if of == nil {
		return nil
	}
	c := *of
	return &c
}

// DeepCopyObject implements runtime.Object.
func (e *KopfExample) DeepCopyObject() runtime.Object { return e.DeepCopy() }

// DeepCopyObject implements runtime.Object.
func (l *KopfExampleList) DeepCopyObject() runtime.Object {
	c := &KopfExampleList{TypeMeta: l.TypeMeta}
	l.ListMeta.DeepCopyInto(&c.ListMeta)
	for i := range l.Items {
		c.Items = append(c.Items, *l.Items[i].DeepCopy())
	}
	return c
}
