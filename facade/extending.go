package kopf

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kopf-runtime/kopf-runtime/storage/diff"
	"github.com/kopf-runtime/kopf-runtime/storage/jsontext"
)

// AddError has the set-up of the operator fail with this error, as with mistakes of registrations here, and with the
// others. It is for packages that register handlers for their users, such as package rules. Nil is no error.
func (s Selection[T]) AddError(err error) {
	if err != nil {
		s.kind.addError(err)
	}
}

// Raw is the object as it is to be and as it is, as the API server has sent them: with what T does not have, and
// without the zero values that it adds; and with what earlier handlers of the request have changed. It is nil for a
// deletion, the old one for a creation. Both are copies.
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

// Diff leads from the old object to the new one, by raw values, whatever T knows of them, and without the changes of
// handlers; without either, it is one item with the whole of the other. It is compared when it is asked for. Kopf:
// diff.
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
