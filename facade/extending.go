package facade

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kopf-runtime/kopf-runtime/storage/diff"
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
func (a *Admission[T]) Raw() (object, old Dynamic) {
	asked := a.call.Admission
	if asked.Object != nil {
		object = asDynamic(a.call.Object)
	}
	if asked.Old != nil {
		old = asDynamic(asked.Old)
	}
	return object, old
}

func asDynamic(body map[string]any) Dynamic {
	own, _ := diff.Copy(body).(map[string]any)
	return &unstructured.Unstructured{Object: own}
}
