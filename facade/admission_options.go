package kopf

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/codec"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/registry"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

// admissionOption is an option of Validate and Mutate.
type admissionOption interface {
	Option
	admissionOption()
}

func (option) admissionOption() {}

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
