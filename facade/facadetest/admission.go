package facadetest

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"reflect"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/internal/reviewing"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/webhooks/review"
)

// Admission is an admission request about one object, to which a handler under test responds. Create it with
// [NewAdmission].
type Admission[T client.Object] struct{ trial trial[T] }

// NewAdmission returns a request for the object, with the options [Client], [ID], [Old] and [Request]. For a deletion,
// the object is the stored one.
func NewAdmission[T client.Object](object T, options ...Option) *Admission[T] {
	return &Admission[T]{trial: newTrial("NewAdmission", object, options, optOld, optRequest)}
}

// Verdict is the result of calling a handler for an admission request.
type Verdict[T client.Object] struct {
	// Err is the error that the function has returned, joined with the errors of its Patch and similar calls. If the
	// test has not passed something that the handler uses, Err says so. Nil allows the request.
	Err error
	// Called reports whether the function was called. It is not called if its options exclude the request, which is
	// allowed then.
	Called bool
	// Allowed, Message and Code are the response to the API server. Warnings are shown to the client that sent the
	// request.
	Allowed  bool
	Message  string
	Code     int32
	Warnings []string
	// Object is the object of the test after the patch is applied.
	Object T
	// Patch is the JSON patch that the API server receives; empty if the handler has not changed the object.
	Patch []byte
	// InPlace lists the fields that a validating handler has changed in its copy of the object. See [Outcome].
	InPlace []string
}

// Validate calls the function as a validating handler, with options of that verb, such as kopf.Operations.
func (a *Admission[T]) Validate(
	ctx context.Context, fn kopf.AdmissionFunc[T], options ...kopf.Option,
) Verdict[T] {
	return a.reviewWithHandler(
		ctx,
		"validating",
		func(s kopf.Selection[T]) { s.Validate(a.trial.options.id, fn, kopf.JoinOptions(options...)) },
	)
}

// Mutate calls the function as a mutating handler, with options of that verb.
func (a *Admission[T]) Mutate(
	ctx context.Context, fn kopf.AdmissionFunc[T], options ...kopf.Option,
) Verdict[T] {
	return a.reviewWithHandler(
		ctx,
		"mutating",
		func(s kopf.Selection[T]) { s.Mutate(a.trial.options.id, fn, kopf.JoinOptions(options...)) },
	)
}

// reviewWithHandler registers the handler and runs one review with the operator's own reviewer, so that options,
// defaults and errors behave as in an operator.
func (a *Admission[T]) reviewWithHandler(
	ctx context.Context, kind string, register func(kopf.Selection[T]),
) Verdict[T] {
	r := &recorder{}
	h := a.trial.registerHandler(register)
	out := Verdict[T]{Object: a.trial.subject.withMergePatch(nil)}
	// The response has only the text of the error; the test needs the error itself.
	heard := captureHandlerError(h, r, &out.Err)
	reviewer := review.Reviewer{ServedResources: func() []review.ServedResource {
		return []review.ServedResource{{
			Resource: *a.trial.subject.discoveredResource(),
			Handlers: []*adapters.HandlerChain{adapters.New(heard, nil)},
		}}
	}}
	answer, err := reviewer.Review(withLogger(ctx), review.EndpointRequest{Body: a.encodeReview(), Type: kind})
	if err != nil {
		panicMisuse("NewAdmission: %v", err)
	}
	said := answer.Response
	out.Allowed, out.Warnings, out.Patch = said.Allowed, said.Warnings, said.Patch
	if said.Status != nil {
		out.Message, out.Code = said.Status.Message, said.Status.Code
		out.Err = cmp.Or(out.Err, errors.New(said.Status.Message))
	}
	if len(said.Patch) > 0 {
		out.Object = a.applyJSONPatch(said.Patch)
	}
	out.Called, _, _, _, out.InPlace = r.copyRecorded()
	// A handler may discard the error of a missing client. Report it in any case, because the handler did not do its
	// work.
	if err := a.trial.absent.usageError(); err != nil && !errors.Is(out.Err, err) {
		out.Err = errors.Join(out.Err, err)
	}
	return out
}

// captureHandlerError returns a copy of the handler that also stores the error of the function.
func captureHandlerError(h *handlers.Handler, r *recorder, into *error) *handlers.Handler {
	own := *r.wrapHandler(h)
	inner := own.Call
	own.Call = func(ctx context.Context, call *handlers.Invocation) error {
		*into = inner(ctx, call)
		return *into
	}
	return &own
}

// encodeReview returns the AdmissionReview, as JSON, that an API server would send. It fills in all fields that the
// test has not set.
func (a *Admission[T]) encodeReview() []byte {
	w, r := a.trial.options, a.trial.subject.servedResource()
	asked := admissionv1.AdmissionRequest{}
	if w.request != nil {
		asked = *w.request
	}
	if asked.Operation == "" {
		asked.Operation = admissionv1.Create
		if w.isGiven(optOld) {
			asked.Operation = admissionv1.Update
		}
	}
	asked.UID = cmp.Or(asked.UID, "review-1")
	// The kind and the resource are always those of the object; values in Request are ignored.
	asked.Kind = metav1.GroupVersionKind{Group: r.Group, Version: r.Version, Kind: r.Kind}
	asked.Resource = metav1.GroupVersionResource{Group: r.Group, Version: r.Version, Resource: r.Plural}
	object := a.trial.subject.bodyAsStored()
	metadata, _ := object["metadata"].(map[string]any)
	name, _ := metadata["name"].(string)
	namespace, _ := metadata["namespace"].(string)
	asked.Name, asked.Namespace = cmp.Or(asked.Name, name), cmp.Or(asked.Namespace, namespace)
	if reflect.ValueOf(asked.UserInfo).IsZero() {
		asked.UserInfo.Username = "kubernetes-admin"
	}
	a.setReviewedObjects(&asked, object)
	text, err := json.Marshal(admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"}, Request: &asked,
	})
	if err != nil {
		panicMisuse("NewAdmission: %v", err)
	}
	return text
}

// setReviewedObjects sets the object and the old object of the request, as the API server does for each operation: a
// creation has no old object, and a deletion has only the old one. It panics if the options do not fit the operation.
func (a *Admission[T]) setReviewedObjects(asked *admissionv1.AdmissionRequest, object map[string]any) {
	switch old := a.trial.options.isGiven(optOld); {
	case asked.Operation == admissionv1.Delete && old:
		panicMisuse("NewAdmission: a deletion is about one object: leave Old out")
	case asked.Operation == admissionv1.Create && old:
		panicMisuse("NewAdmission: there is nothing old in a creation: leave out Old, or set the Operation in Request")
	case asked.Operation == admissionv1.Update && !old:
		panicMisuse("NewAdmission: an update needs the former object: pass Old")
	case asked.Operation == admissionv1.Delete:
		asked.OldObject = newRawExtension(object)
		return
	case old:
		asked.OldObject = newRawExtension(a.trial.encodeOld())
	}
	asked.Object = newRawExtension(object)
}

// newRawExtension encodes an object for a request.
func newRawExtension(body map[string]any) runtime.RawExtension {
	text, err := json.Marshal(body)
	if err != nil {
		panicMisuse("NewAdmission: %v", err)
	}
	return runtime.RawExtension{Raw: text}
}

// applyJSONPatch returns the object of the test with a JSON patch applied, as the API server applies it.
func (a *Admission[T]) applyJSONPatch(text []byte) T {
	after, err := reviewing.ApplyJSONPatch(newRawExtension(a.trial.subject.bodyAsStored()).Raw, text)
	if err != nil {
		panicMisuse("applying the JSON patch of the handler: %v", err)
	}
	return a.trial.subject.withoutAddedFields(after)
}
