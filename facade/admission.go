package kopf

import (
	"crypto/x509"
	"fmt"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/codec"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/internal/jsontext"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

// Admission is a request to create, update, delete or connect to an object, before it is stored. A short name for it:
//
//	type Admission = kopf.Admission[*v1.Database]
type Admission[T client.Object] struct {
	// Object is the requested state, with changes by earlier handlers; for a deletion, the present one. Kopf: body,
	// spec, status, meta, new.
	Object T
	// Old is the present state: never nil, and empty without HasOld. Kopf: old.
	Old    T
	HasOld bool
	// Operation is the requested operation. Kopf: operation.
	Operation admissionv1.Operation
	// Subresource is empty for the object as a whole. Kopf: subresource.
	Subresource string
	// Name and Namespace are those of the object; a name that is not generated yet is empty. Kopf: name, namespace.
	Name, Namespace string
	// DryRun forbids side effects: nothing will be stored. Kopf: dryrun.
	DryRun bool
	// UserInfo is the requesting user. Kopf: userinfo.
	UserInfo authenticationv1.UserInfo
	// Headers are those of the HTTP request. Kopf: headers.
	Headers http.Header
	// PeerCertificates is the verified chain of the client. Kopf: sslpeer.
	PeerCertificates []*x509.Certificate
	// ID is the handler's.
	ID string
	// Client and APIReader are those of [Change].
	Client    client.Client
	APIReader client.Reader

	callState

	// codec, call and keys are those of the call, see Change.
	codec *codec.Codec[T]
	call  *handlers.Invocation
	keys  *listKeys
	// finalizer is the name of the operator's finalizer, which handlers cannot remove.
	finalizer     string
	mistakes      *loggedMistakes
	isMutating    bool
	encodedBefore []byte             // JSON of Object before the call; only for mutating handlers
	original      *codec.Original[T] // Object before the call, to find lost changes; nil unless checked
}

// Resource describes the kind of the object, see [Change.Resource].
func (a *Admission[T]) Resource() Resource {
	a.mustHaveCall()
	return resourceOf(*a.call.Resource)
}

// GetObject returns a.Object, for a [Call].
func (a *Admission[T]) GetObject() T { return a.Object }

// Latest returns a copy of a.Object.
func (a *Admission[T]) Latest() T {
	a.mustHaveCall()
	a.lock()
	defer a.mu.Unlock()
	return a.codec.Copy(a.Object)
}

// Warning adds a warning for clients such as kubectl. Kopf: warnings.
func (a *Admission[T]) Warning(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	a.runLocked(func() error {
		if a.call.Writer == nil {
			return errReadOnly
		}
		a.call.Admission.AddWarning(text)
		return nil
	})
}

// Raw returns copies of both objects with fields that T lacks, and with changes of earlier handlers. A deletion has a
// nil object, a creation a nil old.
func (a *Admission[T]) Raw() (object, old *Unstructured) {
	a.mustHaveCall()
	if asked := a.call.Admission; asked.Object != nil {
		object = a.unstructuredCopy(a.rawObject)
	}
	if asked := a.call.Admission; asked.Old != nil {
		old = a.unstructuredCopy(asked.Old.Value)
	}
	return object, old
}

// unstructuredCopy returns a copy of a value for the handler, as an object without a Go type.
func (a *Admission[T]) unstructuredCopy(of func() (map[string]any, error)) *Unstructured {
	own, _ := diff.DeepCopy(a.requestValue(of)).(map[string]any)
	return &unstructured.Unstructured{Object: own}
}

// Diff returns the changes from the old object to the new one by raw values, without those of handlers. Kopf: diff.
func (a *Admission[T]) Diff() Diff {
	a.mustHaveCall()
	asked := a.call.Admission
	before, after := a.ownedValue(asked.Old), a.ownedValue(asked.Object)
	return Diff(diff.Compute(orNull(before), orNull(after)))
}

// ownedValue returns an object that the handler may modify. If the text is available, it is decoded again: a copy of
// the shared value would keep both in memory.
func (a *Admission[T]) ownedValue(of *jsontext.LazyObject) map[string]any {
	if of.IsEncoded() {
		return a.requestValue(jsontext.New(of.Text()).Value)
	}
	value := a.requestValue(of.Value)
	own, _ := diff.DeepCopy(value).(map[string]any)
	return own
}

// requestValue returns a shared value of the request. An error fails the handler when it returns.
func (a *Admission[T]) requestValue(of func() (map[string]any, error)) (value map[string]any) {
	value, err := of()
	if err != nil {
		a.runLocked(func() error { return err })
	}
	return value
}

// orNull returns an untyped nil for a nil mapping. Diffs distinguish null from an empty object.
func orNull(object map[string]any) any {
	if object == nil {
		return nil
	}
	return object
}

// mustHaveCall panics for a value that does not come from an operator.
func (a *Admission[T]) mustHaveCall() {
	if a == nil || a.call == nil {
		panic(errWithoutOperator)
	}
}

// runLocked is [callState.run] for a value that may not come from an operator.
func (a *Admission[T]) runLocked(act func() error) {
	a.mustHaveCall()
	a.run(act)
}

// rawObject returns the object with the changes of earlier handlers. It is shared: callers must not modify it.
func (a *Admission[T]) rawObject() (map[string]any, error) {
	if a.call.Object != nil {
		return a.call.Object, nil
	}
	return a.call.Admission.ReviewedObject().Value()
}
