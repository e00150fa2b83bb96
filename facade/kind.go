package facade

import (
	"errors"
	"fmt"
	"path"
	"reflect"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/kopf-runtime/kopf-runtime/reconcilers"
)

// kind is what a selection is of. It is known at the latest when the scheme is: a Go type alone does not say.
type kind struct {
	op       *Operator
	location string
	// find is nil for a kind that is a mistake itself: nothing can be registered for it.
	find func(*runtime.Scheme) (reconcilers.Selector, error)
}

// mistake keeps an error of the caller's registration. A selection without an operator was not made by this package.
func (k *kind) mistake(err error) {
	if k == nil || !k.op.made() {
		stray(err)
		return
	}
	k.op.mistake(location(), err)
}

// For selects all objects of a Go type, given by an empty one: For(op, &v1.Database{}). Handlers get objects of that type.
//
// The kind is the prototype's, if that has its TypeMeta set, and otherwise the type's in the scheme of the manager; under
// [Main], give the type's AddToScheme to [AddToScheme]. For fields that the type does not have, see [Change.Patch].
func For[T client.Object](op *Operator, prototype T) Selection[T] {
	k := &kind{op: op, location: location()}
	typ := reflect.TypeOf(prototype)
	switch {
	case !op.made():
		k.mistake(fmt.Errorf("facade.For: %w", errNoOperator))
	case typ == nil || typ.Kind() != reflect.Pointer || reflect.ValueOf(prototype).IsNil():
		k.mistake(errors.New("facade.For: the prototype is nil: give it an empty object, such as &v1.Database{}"))
	default:
		given := prototype.GetObjectKind().GroupVersionKind()
		k.find = func(scheme *runtime.Scheme) (reconcilers.Selector, error) {
			return selectorOf(prototype, given, scheme)
		}
		return Selection[T]{ChangeSelection[T]{kind: k, form: newForm[T](typ.Elem())}}
	}
	return Selection[T]{ChangeSelection[T]{kind: k}}
}

func selectorOf(prototype client.Object, given schema.GroupVersionKind, scheme *runtime.Scheme) (reconcilers.Selector, error) {
	if given.Version != "" && given.Kind != "" {
		return reconcilers.Selector{GroupVersion: given.GroupVersion(), Kind: given.Kind}, nil
	}
	found, err := apiutil.GVKForObject(prototype, scheme)
	if runtime.IsNotRegisteredError(err) {
		home := reflect.TypeOf(prototype).Elem().PkgPath()
		return reconcilers.Selector{}, fmt.Errorf(
			"facade.For(%T): the manager's scheme does not know the type: call AddToScheme of package %s on the scheme, or give facade.AddToScheme(%s.AddToScheme) to facade.New: %w",
			prototype, home, path.Base(home), err)
	}
	if err != nil {
		return reconcilers.Selector{}, fmt.Errorf("facade.For(%T): finding the kind of the type: %w", prototype, err)
	}
	return reconcilers.Selector{GroupVersion: found.GroupVersion(), Kind: found.Kind}, nil
}

// ForResource selects all objects of a resource without a Go type for it, in any of Kopf's spellings:
//
//	ForResource(op, "kopfexamples")                     // the plural, the singular, the kind or a short name
//	ForResource(op, "kopfexamples.kopf.dev")            // with the group
//	ForResource(op, "kopfexamples.v1.kopf.dev")         // with group and version
//	ForResource(op, "kopf.dev", "kopfexamples")
//	ForResource(op, "kopf.dev/v1", "kopfexamples")
//	ForResource(op, "kopf.dev", "v1", "kopfexamples")
//	ForResource(op, "v1", "pods")                       // the core group
//
// Handlers get the objects as they are, unstructured. What the name means is asked of the API server, and again when CRDs
// come and go: without a version, it is the one that the server prefers. Of several resources of one name, that of the core
// group is meant; if there is none, the name is ambiguous, and none of them is handled: a line in the log says so.
func ForResource(op *Operator, spelling ...string) Selection[*unstructured.Unstructured] {
	k := &kind{op: op, location: location()}
	selector, err := reconcilers.Spelled(spelling...)
	switch {
	case !op.made():
		k.mistake(fmt.Errorf("facade.ForResource: %w", errNoOperator))
	case err != nil:
		k.mistake(fmt.Errorf("facade.ForResource(%s): %w", spelled(spelling), err))
	default:
		k.find = func(*runtime.Scheme) (reconcilers.Selector, error) { return selector, nil }
	}
	return Selection[*unstructured.Unstructured]{ChangeSelection[*unstructured.Unstructured]{
		kind: k, form: newForm[*unstructured.Unstructured](reflect.TypeFor[unstructured.Unstructured]()),
	}}
}

func spelled(texts []string) string {
	all := make([]string, 0, len(texts))
	for _, text := range texts {
		all = append(all, strconv.Quote(text))
	}
	return strings.Join(all, ", ")
}
