package kopf

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/codec"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/registry"
)

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
	made := AdmissionSelection[S]{Selection[S]{op: of.op, kind: of.kind}, name}
	typ := reflect.TypeFor[S]()
	var problem error
	switch {
	case of.kind == nil:
		problem = errors.New("the selection is empty: make it with kopf.For or kopf.ForResource")
	case name == "" || name == "*" || strings.Contains(name, "/"):
		problem = errors.New(`it is one name, such as "scale"`)
	case typ.Kind() != reflect.Pointer || typ.Elem().Kind() != reflect.Struct:
		problem = fmt.Errorf("%s is no type of objects: name the pointer to one, such as *autoscalingv1.Scale", typ)
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
	admit(s.objects, admitting[T]{verb: "Validate", id: id, call: fn, subresource: s.subresource}, opts)
}

// Mutate is [Selection.Mutate] for the subresource.
func (s AdmissionSelection[T]) Mutate(id string, fn AdmissionFunc[T], opts ...admissionOption) {
	admit(s.objects, admitting[T]{
		verb: "Mutate", id: id, call: fn, mutating: true, subresource: s.subresource,
	}, opts)
}
