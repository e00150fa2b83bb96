package kopf

import (
	"cmp"
	"context"
	"crypto/x509"
	"fmt"
	"net/http"
	"slices"
	"sync"

	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/codec"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/inplace"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
)

// Admission is one request to create, update or delete one object, or to connect to it, as one handler gets it before
// anything is stored. A short name for it saves typing:
//
//	type Admission = kopf.Admission[*v1.Database]
//
// The fields are the handler's own copies. The logger is in the context: log.FromContext(ctx).
type Admission[T client.Object] struct {
	// Object is the object as it is to be, with what earlier handlers of the request have changed; for a deletion, as
	// it is. A mutating handler may change it in place. Kopf: body, spec, status, meta, new.
	Object T
	// Old is the object as it is, never nil: without HasOld, as in a creation, it is empty. Kopf: old.
	Old    T
	HasOld bool
	// Operation is what is to be done with the object. Kopf: operation.
	Operation admissionv1.Operation
	// Subresource is empty for the object as a whole. Kopf: subresource.
	Subresource string
	// Name and Namespace are those of the object, whatever is in the request; the name is empty if it is still to be
	// generated. Kopf: name, namespace.
	Name, Namespace string
	// DryRun is true if nothing will be stored: the handler must have no side effects then. Kopf: dryrun.
	DryRun bool
	// UserInfo is who asks. Kopf: userinfo.
	UserInfo authenticationv1.UserInfo
	// Headers are those of the HTTP request. Kopf: headers.
	Headers http.Header
	// PeerCertificates are those of the client that were verified, its own first. Kopf: sslpeer.
	PeerCertificates []*x509.Certificate
	// ID is the handler's.
	ID string
	// Client reads and writes other objects, Live reads past all caches: see [Change].
	Client    client.Client
	APIReader client.Reader

	log   logr.Logger
	codec *codec.Codec[T]
	call  *handlers.Invocation
	keys  *listKeys
	// finalizer is the operator's own.
	finalizer string
	mistakes  *mistakes
	mutating  bool
	before    []byte             // the text of Object as it was, for a mutating handler
	original  *inplace.Object[T] // for another one; nil if that is not looked at

	mu       sync.Mutex
	errs     []error // of the calls of the handler
	returned bool
}

// AdmissionFunc is a function that is asked about a request.
//
// # Flow
//
// It is called once for a request, and the request waits for it: the API server gives it 30 seconds by default, and the
// context ends when it has given up. There are no retries. It may be called again for the same request, such as when
// another webhook has changed the object, and for a dry run; nothing says whether the object is stored in the end.
//
// # Errors
//
// An error denies the request, and whoever has made it gets the text: that of [Deny] with a code of its own, as does
// that of any error of the API, see apierrors.APIStatus; all others with the code 500. A panic denies it as well.
type AdmissionFunc[T client.Object] func(ctx context.Context, a *Admission[T]) error

// Validate registers a handler that allows or denies requests, by an error, and cannot change the object. Kopf:
// on.validate.
//
//	dbs.Validate("quota", func(ctx context.Context, a *Admission) error {
//		if a.Object.Spec.Size > 100 {
//			return kopf.Deny(http.StatusForbidden, "%d is too large: 100 is the most", a.Object.Spec.Size)
//		}
//		return nil
//	}, kopf.Operations("CREATE", "UPDATE"))
//
// The filters look at the object as it is to be; for a deletion, as it is. Without [Operations], the handler is not
// called for deletions, unless with [AsKopf]: an object that has become invalid can be deleted.
//
// The operator's own changes of its annotations, its finalizer and the status are admitted without calling a handler,
// and so is the removal of finalizers from an object that is being deleted.
//
// The id is the last part of the path that the API server sends the requests to, and is unique among the handlers of
// this verb and kind.
func (s Selection[T]) Validate(id string, fn AdmissionFunc[T], opts ...admissionOption) {
	admit(s, admitting[T]{verb: "Validate", id: id, call: fn}, opts)
}

// Mutate registers a handler that may change the object before it is stored, and may deny the request. Kopf: on.mutate.
//
//	dbs.Mutate("defaults", func(_ context.Context, a *Admission) error {
//		a.Object.Spec.Size = cmp.Or(a.Object.Spec.Size, 1)
//		return nil
//	}, kopf.Operations("CREATE"))
//
// It changes a.Object in place or by Patch. Only the difference is sent to the API server: fields that T does not have
// survive, in lists as by [Change.Patch]. Name, uid, resource version and the like stay as they are. The change should
// be idempotent: the object may come again with it.
//
// A deletion has nothing to be changed: a mutating handler is called for it only with [Operations]("DELETE"), which
// may deny it. For the id and the filters, see Validate.
func (s Selection[T]) Mutate(id string, fn AdmissionFunc[T], opts ...admissionOption) {
	admit(s, admitting[T]{verb: "Mutate", id: id, call: fn, mutating: true}, opts)
}

// admitting is what a verb for admission is called with.
type admitting[T client.Object] struct {
	verb, id    string
	call        AdmissionFunc[T]
	mutating    bool
	subresource string // of another kind than the selection
}

// admit registers an admitting handler.
func admit[T client.Object](s Selection[T], fn admitting[T], opts []admissionOption) {
	h := handlers.Handler{
		ID: fn.id, Family: handlers.Admitting, Mutating: fn.mutating, Subresource: fn.subresource, ReadsText: true,
	}
	chosen, ok := prepare(s, &h, fn.verb, fn.call == nil, asOptions(opts), nil)
	for _, problem := range append(fn.problems(&h), fn.addRequestFilter(s, &h, chosen)) {
		if problem == nil {
			continue
		}
		ok = false
		s.kind.addError(fmt.Errorf("%s(%q): %w", fn.verb, fn.id, problem))
	}
	if !ok {
		return
	}
	h.Requires = append(slices.Clip(s.requires), fieldRequires(h.Field, chosen)...)
	setFunction(&h, fn.call)
	said := &mistakes{}
	h.Call = func(ctx context.Context, call *handlers.Invocation) error {
		a, err := fn.newAdmission(ctx, s, call, said)
		if err != nil {
			return err
		}
		defer s.kind.op.reviewed.begin(call.Admission, a.Object, a.Old)()
		err = fn.call(ctx, a)
		return a.end(cmp.Or(err, context.Cause(ctx)))
	}
	s.kind.op.register(registration{kind: s.kind, verb: fn.verb, handler: &h})
}

// Resource is what the object is one of, see [Change.Resource]. For a subresource, it is that of the object as a whole.
func (a *Admission[T]) Resource() Resource {
	a.needCall()
	return resourceOf(*a.call.Resource)
}

// GetObject returns a.Object, for functions that take a [Call].
func (a *Admission[T]) GetObject() T { return a.Object }

// Latest is a copy of a.Object: nothing newer is known of what is not stored yet.
func (a *Admission[T]) Latest() T {
	a.needCall()
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.codec.Copy(a.Object)
}

// Warning adds a warning that whoever has made the request is shown, such as by kubectl, be it allowed or not. API
// servers cut warnings of more than 256 characters, and drop those beyond 4096 characters in one answer. Kopf:
// warnings.
func (a *Admission[T]) Warning(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	a.do(func() error {
		if a.call.Writes == nil {
			return errOnlyReading
		}
		a.call.Admission.Warn(text)
		return nil
	})
}
