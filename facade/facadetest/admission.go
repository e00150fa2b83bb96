package facadetest

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"reflect"

	jsonpatch "github.com/evanphx/json-patch/v5"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/webhooks/review"
)

// Admission is a request about one object, for a handler to be asked. Make it with [NewAdmission].
type Admission[T client.Object] struct{ trial trial[T] }

// NewAdmission makes a request for the object, with the options [Client], [ID], [Old] and [Request]. For a deletion,
// the object is what is there.
func NewAdmission[T client.Object](object T, options ...Option) *Admission[T] {
	return &Admission[T]{trial: newTrial("NewAdmission", object, options, optOld, optRequest)}
}

// Verdict is what came of asking a handler about a request.
type Verdict[T client.Object] struct {
	// Err is the error of the handler, as the function has returned it, with those of its Patch and the like. Where the
	// test has not given what the handler uses, it says so. Nil allows the request.
	Err error
	// Called is whether the function was called: not if its options are for other requests, which are allowed then.
	Called bool
	// Allowed, Message and Code are the answer to the API server, Warnings what it shows to whoever asks.
	Allowed  bool
	Message  string
	Code     int32
	Warnings []string
	// Object is the object as it is to be: that of the test with the patch.
	Object T
	// Patch is the JSON patch that the API server gets; empty if nothing was changed.
	Patch []byte
	// InPlace are the fields that a validating handler has changed in its copy of the object, see [Outcome].
	InPlace []string
}

// Validate asks the function as a validating handler, with options of that verb, such as kopf.Operations.
func (a *Admission[T]) Validate(
	ctx context.Context, fn kopf.AdmissionFunc[T], options ...kopf.Option,
) Verdict[T] {
	return a.ask(
		ctx,
		"validating",
		func(s kopf.Selection[T]) { s.Validate(a.trial.wishes.id, fn, kopf.JoinOptions(options...)) },
	)
}

// Mutate asks the function as a mutating handler, with options of that verb.
func (a *Admission[T]) Mutate(
	ctx context.Context, fn kopf.AdmissionFunc[T], options ...kopf.Option,
) Verdict[T] {
	return a.ask(
		ctx,
		"mutating",
		func(s kopf.Selection[T]) { s.Mutate(a.trial.wishes.id, fn, kopf.JoinOptions(options...)) },
	)
}

func (a *Admission[T]) ask(ctx context.Context, kind string, register func(kopf.Selection[T])) Verdict[T] {
	absent, r := &noClient{}, &recorder{}
	h := a.trial.handler(absent, register)
	out := Verdict[T]{Object: a.trial.subject.changed(nil)}
	heard := watchVerdict(h, r, &out.Err)
	reviewer := review.Reviewer{Served: func() []review.Served {
		return []review.Served{{
			Resource: *a.trial.subject.discovered(), Handlers: []*adapters.Handler{adapters.New(heard, nil)},
		}}
	}}
	answer, err := reviewer.Review(listening(ctx, r), review.Request{Body: a.body(), Type: kind})
	if err != nil {
		mistake("NewAdmission: %v", err)
	}
	said := answer.Response
	out.Allowed, out.Warnings, out.Patch = said.Allowed, said.Warnings, said.Patch
	if said.Status != nil {
		out.Message, out.Code = said.Status.Message, said.Status.Code
		out.Err = cmp.Or(out.Err, errors.New(said.Status.Message))
	}
	if len(said.Patch) > 0 {
		out.Object = a.patched(said.Patch)
	}
	out.Called, _, _, _, out.InPlace = r.seen()
	if err := absent.err(); err != nil && !errors.Is(out.Err, err) {
		out.Err = errors.Join(out.Err, err)
	}
	return out
}

// watchVerdict stands around the function, and keeps its error.
func watchVerdict(h *handlers.Handler, r *recorder, into *error) *handlers.Handler {
	own := *r.watch(h)
	inner := own.Call
	own.Call = func(ctx context.Context, call *handlers.Invocation) error {
		*into = inner(ctx, call)
		return *into
	}
	return &own
}

// body is the review that the API server sends.
func (a *Admission[T]) body() []byte {
	w, r := a.trial.wishes, a.trial.subject.resource()
	asked := admissionv1.AdmissionRequest{}
	if w.request != nil {
		asked = *w.request
	}
	if asked.Operation == "" {
		asked.Operation = admissionv1.Create
		if w.has(optOld) {
			asked.Operation = admissionv1.Update
		}
	}
	asked.UID = cmp.Or(asked.UID, "review-1")
	asked.Kind = metav1.GroupVersionKind{Group: r.Group, Version: r.Version, Kind: r.Kind}
	asked.Resource = metav1.GroupVersionResource{Group: r.Group, Version: r.Version, Resource: r.Plural}
	object := a.trial.subject.body()
	metadata, _ := object["metadata"].(map[string]any)
	name, _ := metadata["name"].(string)
	namespace, _ := metadata["namespace"].(string)
	asked.Name, asked.Namespace = cmp.Or(asked.Name, name), cmp.Or(asked.Namespace, namespace)
	if reflect.ValueOf(asked.UserInfo).IsZero() {
		asked.UserInfo.Username = "kubernetes-admin"
	}
	a.objects(&asked, object)
	text, err := json.Marshal(admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"}, Request: &asked,
	})
	if err != nil {
		mistake("NewAdmission: %v", err)
	}
	return text
}

// objects puts the objects where they belong.
func (a *Admission[T]) objects(asked *admissionv1.AdmissionRequest, object map[string]any) {
	switch old := a.trial.wishes.has(optOld); {
	case asked.Operation == admissionv1.Delete && old:
		mistake("NewAdmission: a deletion is about one object: leave Old out")
	case asked.Operation == admissionv1.Create && old:
		mistake("NewAdmission: there is nothing old in a creation: leave out Old, or set the Operation in Request")
	case asked.Operation == admissionv1.Update && !old:
		mistake("NewAdmission: an update needs the former object: pass Old")
	case asked.Operation == admissionv1.Delete:
		asked.OldObject = rawOf(object)
		return
	case old:
		asked.OldObject = rawOf(a.trial.encodeOld())
	}
	asked.Object = rawOf(object)
}

func rawOf(body map[string]any) runtime.RawExtension {
	text, err := json.Marshal(body)
	if err != nil {
		mistake("NewAdmission: %v", err)
	}
	return runtime.RawExtension{Raw: text}
}

// patched is the object of the test with a JSON patch, as the API server applies it.
func (a *Admission[T]) patched(text []byte) T {
	patch, err := jsonpatch.DecodePatch(text)
	if err != nil {
		mistake("the JSON patch of the handler: %v", err)
	}
	after, err := patch.Apply(rawOf(a.trial.subject.body()).Raw)
	if err != nil {
		mistake("applying the JSON patch of the handler: %v", err)
	}
	return a.trial.subject.restored(after)
}
