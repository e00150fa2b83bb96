package kopf

import (
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/codec"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/registry"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

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

// optionProblems returns errors for options that exclude each other.
func (fn admissionRegistration[T]) optionProblems(h *handlers.Handler) (all []error) {
	// Objects without a Go type can be of any kind, so only typed selections are restricted.
	_, dynamic := any(*new(T)).(*Unstructured)
	instead, other := subresourceKinds[h.Subresource]
	switch {
	case fn.subresource != "" && h.Subresource != fn.subresource:
		all = append(all, fmt.Errorf("Subresource(%q): the selection is of %q already: leave Subresource out",
			h.Subresource, fn.subresource))
	case fn.subresource == "" && other && !dynamic:
		all = append(all, fmt.Errorf("Subresource(%q): its objects are of a kind of their own: register the handler "+
			"with %s", h.Subresource, instead))
	}
	// A deletion has no object to change. As in Kopf, the engine calls mutating handlers for deletions only if they are
	// for nothing else.
	deleting := slices.Contains(h.Operations, string(admissionv1.Delete))
	if h.Mutating && deleting && slices.ContainsFunc(h.Operations, func(o string) bool { return o != "DELETE" }) {
		all = append(all, errors.New("Operations: a mutating handler is asked about deletions only if it is for "+
			`nothing else: register one of its own with Operations("DELETE")`))
	}
	return all
}

// subresourceKinds are the subresources of built-in kinds that have a kind of their own, with the Go code that selects
// them. The objects of the last four have no metadata, so they need Unstructured.
var subresourceKinds = map[string]string{
	"scale":       `kopf.ForSubresource[*autoscalingv1.Scale](…, "scale")`,
	"eviction":    `kopf.ForSubresource[*policyv1.Eviction](…, "eviction")`,
	"binding":     `kopf.ForSubresource[*corev1.Binding](…, "binding")`,
	"token":       `kopf.ForSubresource[*authenticationv1.TokenRequest](…, "token")`,
	"exec":        `kopf.ForSubresource[*kopf.Unstructured](…, "exec")`,
	"attach":      `kopf.ForSubresource[*kopf.Unstructured](…, "attach")`,
	"portforward": `kopf.ForSubresource[*kopf.Unstructured](…, "portforward")`,
	"proxy":       `kopf.ForSubresource[*kopf.Unstructured](…, "proxy")`,
}

// fieldRequirements returns the requirement of InField and Value. Without a pattern, the field must be present.
func fieldRequirements(field diff.Path, chosen []option) []handlers.Requirement {
	if field == nil {
		return nil
	}
	// OldValue and NewValue are not admission options.
	pattern, equals := any(Present), any(nil)
	for _, o := range chosen {
		if o.name == valueName {
			pattern, equals = o.userPattern, o.jsonPattern
		}
	}
	if requirement := fieldRequirement(field, pattern, equals); requirement != nil {
		return []handlers.Requirement{*requirement}
	}
	return nil
}

// newAdmission creates the argument of the handler. The filter of WhenRequest also uses it, without mistakes.
func (fn admissionRegistration[T]) newAdmission(
	ctx context.Context, s Selection[T], call *handlers.Invocation, said *loggedMistakes,
) (*Admission[T], error) {
	// All handlers share the request: clone the parts that a handler could modify.
	asked, cluster := call.Admission, s.op.clients
	a := &Admission[T]{
		HasOld: asked.Old != nil, Operation: admissionv1.Operation(asked.Operation), Subresource: asked.Subresource,
		Name: asked.Name, Namespace: asked.Namespace, DryRun: asked.DryRun,
		Headers: asked.Headers.Clone(), PeerCertificates: cloneCertificates(asked.PeerCertificates),
		ID:     call.Handler.ID,
		Client: cluster.client, APIReader: cluster.apiReader, callState: callState{log: logf.FromContext(ctx)},
		codec: s.codec, call: call,
		keys: cluster.keys, finalizer: cluster.finalizer, mistakes: said, isMutating: call.Handler.Mutating,
	}
	if err := codec.DecodeObject(asked.User, &a.UserInfo); err != nil {
		return nil, fmt.Errorf("reading who asks: %w", err)
	}
	// ForSubresource has its own Go type, so the kind of the request is expected to differ from that of the selection.
	if fn.subresource == "" {
		if err := a.checkKind(); err != nil {
			return nil, err
		}
	}
	if err := a.decodeObjects(); err != nil {
		return nil, err
	}
	// After a timeout, the handler is not called.
	return a, cmp.Or(context.Cause(ctx), a.recordOriginal())
}

// cloneCertificates returns copies of the certificates: the handlers of a request share them, and could change them.
func cloneCertificates(certificates []*x509.Certificate) (own []*x509.Certificate) {
	for _, one := range certificates {
		if again, err := x509.ParseCertificate(slices.Clone(one.Raw)); err == nil {
			own = append(own, again)
		}
	}
	return own
}

// WhenRequest is [WhenChange] for admission, with the object as requested. Other requests are allowed. A write or a
// panic denies the request or, with [IgnoreFailures], allows it. Kopf: when= with operation, userinfo, dryrun.
func WhenRequest[T client.Object](matches func(ctx context.Context, a *Admission[T]) bool) admissionOption {
	return matchesOption[admissionOption]("WhenRequest", matches, matches == nil)
}

// addRequestFilter turns WhenRequest into a filter of the handler.
func (fn admissionRegistration[T]) addRequestFilter(s Selection[T], h *handlers.Handler, chosen []option) error {
	matches, given, err := matcherOf[func(ctx context.Context, a *Admission[T]) bool](chosen)
	if !given {
		return err
	}
	// The argument of the filter needs only these fields of the handler.
	described := &handlers.Handler{ID: h.ID, Mutating: h.Mutating, Subresource: h.Subresource}
	h.Matches = func(ctx context.Context, call *handlers.Invocation) (bool, error) {
		a, err := fn.newAdmission(ctx, s, &handlers.Invocation{
			Handler: described, Cause: call.Cause, Resource: call.Resource, Admission: call.Admission,
			EncodedObject: call.Admission.ReviewedObject(),
		}, nil)
		if err != nil {
			return false, err
		}
		// Method calls of the function, such as Patch, are errors here.
		matched := matches(ctx, a)
		return matched, errors.Join(a.errs...)
	}
	return nil
}

// operations are the operations of admission requests in Kubernetes.
var operations = []string{
	string(admissionv1.Create), string(admissionv1.Update), string(admissionv1.Delete), string(admissionv1.Connect),
}

// Operations restricts a handler to CREATE, UPDATE, DELETE or CONNECT. Default: all but DELETE; with [AsKopf], all for
// Validate. Kopf: operations=.
func Operations(list ...admissionv1.Operation) admissionOption {
	var err error
	if len(list) == 0 {
		err = errors.New(`Operations: none is given: write those that the handler is for, such as "CREATE"`)
	}
	names := make([]string, 0, len(list))
	for _, one := range list {
		if !slices.Contains(operations, string(one)) {
			err = fmt.Errorf("Operations(%q): there are %s: name those that the handler is for",
				string(one), strings.Join(operations, ", "))
		}
		names = append(names, string(one))
	}
	return optionOf[admissionOption]("Operations", err, func(h *handlers.Handler) { h.Operations = names })
}

// Subresource restricts a handler to a subresource, such as "status", or to all and the object itself by "*". For a
// kind of its own, use [ForSubresource]. Kopf: subresource=.
func Subresource(name string) admissionOption {
	var err error
	if name == "" || strings.Contains(name, "/") {
		err = fmt.Errorf(`Subresource(%q): it is one name, such as "status", or "*"; for the object as a whole, leave `+
			"Subresource out", name)
	}
	return optionOf[admissionOption]("Subresource", err, func(h *handlers.Handler) { h.Subresource = name })
}

// SideEffects declares side effects, except in dry runs. Kopf: side_effects=True.
func SideEffects() admissionOption {
	return optionOf[admissionOption]("SideEffects", nil, func(h *handlers.Handler) { h.SideEffects = true })
}

// IgnoreFailures allows requests while the handler cannot be called. Kopf: ignore_failures=True.
func IgnoreFailures() admissionOption {
	return optionOf[admissionOption]("IgnoreFailures", nil, func(h *handlers.Handler) { h.IgnoreFailures = true })
}

// Persistent keeps the webhook configured after the exit, so that requests fail. Kopf: persistent=True.
func Persistent() admissionOption {
	return optionOf[admissionOption]("Persistent", nil, func(h *handlers.Handler) { h.Persistent = true })
}

// AdmissionSelection selects requests to a subresource, see [ForSubresource].
type AdmissionSelection[T client.Object] struct {
	objects     Selection[T]
	subresource string
}

// ForSubresource selects requests to a subresource with a kind of its own:
//
//	kopf.ForSubresource[*autoscalingv1.Scale](deployments, "scale").Validate("limit", limit)
//
// Use [Unstructured] for objects without metadata. The selection must not have filters.
func ForSubresource[S, T client.Object](of Selection[T], name string) AdmissionSelection[S] {
	// If the arguments are invalid, its kind is replaced at the end, so that nothing can be registered for it.
	made := AdmissionSelection[S]{Selection[S]{op: of.op, kind: of.kind}, name}
	typ := reflect.TypeFor[S]()
	var problem error
	switch {
	case of.kind == nil:
		problem = errors.New("the selection is empty: make it with kopf.For or kopf.ForResource")
	case name == "" || name == "*" || strings.Contains(name, "/"):
		problem = errors.New(`it is one name, such as "scale"`)
	case typ.Kind() != reflect.Pointer || typ.Elem().Kind() != reflect.Struct:
		problem = fmt.Errorf("%s is not a type of objects: name the pointer to one, such as *autoscalingv1.Scale", typ)
	case len(of.filters) > 0:
		problem = errors.New("the selection has filters, which are for objects of another kind: give it one without, " +
			"and filter what comes out of it")
	default:
		made.objects.codec = codec.New[S](typ.Elem())
		return made
	}
	of.kind.AddError(fmt.Errorf("kopf.ForSubresource(%q): %w", name, problem))
	if of.kind != nil {
		made.objects.kind = &registry.SelectedKind{ // nothing can be registered for it
			Registry: of.kind.Registry, Location: of.kind.Location,
		}
	}
	return made
}

// When narrows the selection, see [Selection.When].
func (s AdmissionSelection[T]) When(matches func(ctx context.Context, object T) bool) AdmissionSelection[T] {
	return AdmissionSelection[T]{s.objects.When(matches), s.subresource}
}

// Validate is [Selection.Validate] for the subresource.
func (s AdmissionSelection[T]) Validate(id string, fn AdmissionFunc[T], opts ...admissionOption) {
	registerAdmission(s.objects, admissionRegistration[T]{verb: "Validate", id: id, call: fn,
		subresource: s.subresource}, opts)
}

// Mutate is [Selection.Mutate] for the subresource.
func (s AdmissionSelection[T]) Mutate(id string, fn AdmissionFunc[T], opts ...admissionOption) {
	registerAdmission(s.objects, admissionRegistration[T]{
		verb: "Mutate", id: id, call: fn, isMutating: true, subresource: s.subresource,
	}, opts)
}
