package kopf

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kopf-runtime/kopf-runtime/storage/diff"
	"github.com/kopf-runtime/kopf-runtime/storage/jsontext"
)

// AddError makes the set-up fail with this error, for packages that register handlers. Nil is ignored.
func (s Selection[T]) AddError(err error) {
	if err != nil {
		s.kind.AddError(err)
	}
}

// Raw returns copies of both objects with fields that T lacks, and with changes of earlier handlers. A deletion has a
// nil object, a creation a nil old.
func (a *Admission[T]) Raw() (object, old *Unstructured) {
	a.needCall()
	if asked := a.call.Admission; asked.Object != nil {
		object = a.dynamic(a.raw)
	}
	if asked := a.call.Admission; asked.Old != nil {
		old = a.dynamic(asked.Old.Value)
	}
	return object, old
}

func (a *Admission[T]) dynamic(of func() (map[string]any, error)) *Unstructured {
	own, _ := diff.Copy(a.valueOf(of)).(map[string]any)
	return &unstructured.Unstructured{Object: own}
}

// Diff returns the changes from the old object to the new one by raw values, without those of handlers. Kopf: diff.
func (a *Admission[T]) Diff() Diff {
	a.needCall()
	asked := a.call.Admission
	before, after := a.ownValue(asked.Old), a.ownValue(asked.Object)
	return Diff(diff.Compute(orNull(before), orNull(after)))
}

// ownValue decodes an object for this handler alone: a copy of a value that is shared would be one more in memory.
func (a *Admission[T]) ownValue(of *jsontext.Object) map[string]any {
	if of.Encoded() {
		return a.valueOf(jsontext.New(of.Text()).Value)
	}
	value := a.valueOf(of.Value)
	own, _ := diff.Copy(value).(map[string]any)
	return own
}

// valueOf is a value of the request, which is not the handler's own. If there is an error, the handler fails by it.
func (a *Admission[T]) valueOf(of func() (map[string]any, error)) (value map[string]any) {
	value, err := of()
	if err != nil {
		a.do(func() error { return err })
	}
	return value
}

// orNull keeps a nil mapping a null: in an interface, it would be an object.
func orNull(object map[string]any) any {
	if object == nil {
		return nil
	}
	return object
}
