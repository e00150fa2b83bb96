package facade

import (
	"errors"
	"fmt"
	"path"
	"reflect"

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

// For selects all objects of a Go type, given by an empty one: For(op, &v1.Database{}). Handlers get objects of that
// type.
//
// The kind is the prototype's, if that has its TypeMeta set, and otherwise the type's in the scheme of the manager;
// under [Main], give the type's AddToScheme to [AddToScheme]. For fields that the type does not have, see
// [Change.Patch].
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

func selectorOf(
	prototype client.Object, given schema.GroupVersionKind, scheme *runtime.Scheme,
) (reconcilers.Selector, error) {
	if given.Version != "" && given.Kind != "" {
		return reconcilers.Selector{GroupVersion: given.GroupVersion(), Kind: given.Kind}, nil
	}
	found, err := apiutil.GVKForObject(prototype, scheme)
	if runtime.IsNotRegisteredError(err) {
		home := reflect.TypeOf(prototype).Elem().PkgPath()
		return reconcilers.Selector{}, fmt.Errorf(
			"facade.For(%T): the manager's scheme does not know the type: call AddToScheme of package %s on the "+
				"scheme, or give facade.AddToScheme(%s.AddToScheme) to facade.New: %w",
			prototype, home, path.Base(home), err)
	}
	if err != nil {
		return reconcilers.Selector{}, fmt.Errorf("facade.For(%T): finding the kind of the type: %w", prototype, err)
	}
	return reconcilers.Selector{GroupVersion: found.GroupVersion(), Kind: found.Kind}, nil
}
