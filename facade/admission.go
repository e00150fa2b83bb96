package kopf

import (
	"cmp"
	"context"
	"crypto/x509"
	"fmt"
	"net/http"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/codec"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/registry"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
	"github.com/kopf-runtime/kopf-runtime/storage/jsontext"
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

// AdmissionFunc reviews a request, without retries. An error or a panic denies it: the client gets the text, with the
// code of [Deny] or of an apierrors.APIStatus, otherwise 500.
type AdmissionFunc[T client.Object] func(ctx context.Context, a *Admission[T]) error

// Validate registers a handler that allows or denies requests. Kopf: on.validate.
//
//	dbs.Validate("quota", func(_ context.Context, a *Admission) error {
//		if a.Object.Spec.Size > 100 {
//			return kopf.Deny(http.StatusForbidden, "%d is too large", a.Object.Spec.Size)
//		}
//		return nil
//	})
//
// Filters apply to Object. Deletions need [Operations]("DELETE") or [AsKopf]. The operator's own writes are not
// reviewed. The id ends the path of the webhook.
func (s Selection[T]) Validate(id string, fn AdmissionFunc[T], opts ...admissionOption) {
	registerAdmission(s, admissionRegistration[T]{verb: "Validate", id: id, call: fn}, opts)
}

// Mutate registers a handler that may change the object before it is stored, or deny the request. Kopf: on.mutate.
//
// It changes a.Object in place or by Patch, and must be idempotent. Fields that T does not have survive. Deletions need
// [Operations]("DELETE") alone.
func (s Selection[T]) Mutate(id string, fn AdmissionFunc[T], opts ...admissionOption) {
	registerAdmission(s, admissionRegistration[T]{verb: "Mutate", id: id, call: fn, isMutating: true}, opts)
}

// admissionRegistration holds the arguments of Validate and Mutate.
type admissionRegistration[T client.Object] struct {
	verb, id    string
	call        AdmissionFunc[T]
	isMutating  bool
	subresource string // with objects of another kind than the selection; see ForSubresource
}

// registerAdmission registers an admission handler.
func registerAdmission[T client.Object](s Selection[T], fn admissionRegistration[T], opts []admissionOption) {
	h := handlers.Handler{
		ID: fn.id, Family: handlers.Admitting, Mutating: fn.isMutating, Subresource: fn.subresource, ReadsText: true,
	}
	chosen, ok := prepareHandler(s, &h, fn.verb, fn.call == nil, asOptions(opts), nil)
	// These checks need the options of the handler, which are applied at this point.
	for _, problem := range append(fn.optionProblems(&h), fn.addRequestFilter(s, &h, chosen)) {
		if problem == nil {
			continue
		}
		ok = false
		s.kind.AddError(fmt.Errorf("%s(%q): %w", fn.verb, fn.id, problem))
	}
	if !ok {
		return
	}
	// The webhook configuration can contain these requirements as matchConditions, so that the API server sends fewer
	// requests. The filters still decide.
	h.Requirements = append(slices.Clip(s.filterRequirements), fieldRequirements(h.Field, chosen)...)
	setFunction(&h, fn.call)
	// One value for all calls of the handler: each mistake is logged once.
	said := &loggedMistakes{}
	h.Call = func(ctx context.Context, call *handlers.Invocation) error {
		a, err := fn.newAdmission(ctx, s, call, said)
		if err != nil {
			return err
		}
		// A Memo recognizes the objects of a running review by their pointers.
		defer s.op.reviewedObjects.BeginReview(call.Admission, a.Object, a.Old)()
		// After the end of ctx, the API server no longer waits. Do not save changes then.
		err = fn.call(ctx, a)
		return a.finishCall(cmp.Or(err, context.Cause(ctx)))
	}
	s.kind.Registry.RegisterHandler(registry.HandlerEntry{Kind: s.kind, Verb: fn.verb, Handler: &h})
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

// AddError makes the set-up fail with this error, for packages that register handlers. Nil is ignored.
func (s Selection[T]) AddError(err error) {
	if err != nil {
		s.kind.AddError(err)
	}
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
