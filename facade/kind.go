package kopf

import (
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/codec"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/discovery"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/panics"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

// kind is the kind of a selection. It is resolved with the scheme, because a Go type alone does not have a kind.
type kind struct {
	op       *Operator
	location string
	// find is nil if the selection itself was an error: nothing can be registered for it.
	find func(*runtime.Scheme) (discovery.Selector, error)
	// checkField returns an error if the Go type cannot have the field.
	checkField func(diff.Path) error
}

// addError keeps an error of the user's call. A selection without an operator was not made by this package.
func (k *kind) addError(err error) {
	if k == nil || !k.op.valid() {
		addOwnerless(err)
		return
	}
	k.op.addError(location(), err)
}

// For selects all objects of a Go type: For(op, &v1.Database{}). The kind comes from the TypeMeta of the prototype, or
// else from the scheme: with [Main], set AddToScheme in [Settings]. For [metav1.PartialObjectMetadata], see
// docs/watching.md.
func For[T client.Object](op *Operator, prototype T) Selection[T] {
	k := &kind{op: op, location: location()}
	typ := reflect.TypeOf(prototype)
	switch {
	case !op.valid():
		k.addError(fmt.Errorf("kopf.For: %w", errNoOperator))
	case typ == nil || typ.Kind() != reflect.Pointer || reflect.ValueOf(prototype).IsNil():
		k.addError(errors.New("kopf.For: the prototype is nil: give it an empty object, such as &v1.Database{}"))
	case kindless(prototype):
		k.addError(fmt.Errorf(
			"kopf.For(%T): the prototype has no apiVersion and kind, and its type does not say them: set both, or "+
				`select by a name: kopf.ForResource(op, "databases")`, prototype))
	default:
		given := prototype.GetObjectKind().GroupVersionKind()
		k.find = func(scheme *runtime.Scheme) (discovery.Selector, error) {
			return selectorOfType(prototype, given, scheme)
		}
		decoder := codec.New[T](typ.Elem())
		k.checkField = decoder.CheckField
		return Selection[T]{kind: k, codec: decoder}
	}
	return Selection[T]{kind: k}
}

// kindless is true for a prototype of a type that fits all kinds, and does not say which one is meant.
func kindless(prototype client.Object) bool {
	switch prototype.(type) {
	case *unstructured.Unstructured, *metav1.PartialObjectMetadata:
		given := prototype.GetObjectKind().GroupVersionKind()
		return given.Version == "" || given.Kind == ""
	default:
		return false
	}
}

// selectorOfType finds the kind of a prototype: its own, or that of its type in the scheme.
func selectorOfType(
	prototype client.Object, given schema.GroupVersionKind, scheme *runtime.Scheme,
) (discovery.Selector, error) {
	if given.Version != "" && given.Kind != "" {
		return discovery.OfKind(given), nil
	}
	found, err := apiutil.GVKForObject(prototype, scheme)
	if runtime.IsNotRegisteredError(err) {
		goType := reflect.TypeOf(prototype).Elem()
		name, _, _ := strings.Cut(goType.String(), ".") // of the package, not of its folder
		return discovery.Selector{}, fmt.Errorf(
			"kopf.For(%T): the manager's scheme does not know the type: call AddToScheme of package %s on the "+
				"scheme, or give kopf.Settings{AddToScheme: runtime.SchemeBuilder{%s.AddToScheme}} to kopf.New: %w",
			prototype, goType.PkgPath(), name, err)
	}
	if err != nil {
		return discovery.Selector{}, fmt.Errorf("kopf.For(%T): finding the kind of the type: %w", prototype, err)
	}
	return discovery.OfKind(found), nil
}

// ForResource selects all objects of a resource without a Go type:
//
//	kopf.ForResource(op, "databases")                   // or singular, kind, short name
//	kopf.ForResource(op, "databases.v1.example.org")    // the version is optional
//	kopf.ForResource(op, "example.org/v1", "databases") // or "example.org", "v1", "databases"
//	kopf.ForResource(op, "v1", "pods")                  // the core group
//	kopf.ForResource(op, "category=all")                // kind=, plural=, singular=, shortcut=
//	kopf.ForResource(op, "example.org", "*")            // the whole group
//
// The preferred version is the default. CRDs can come and go. An ambiguous name selects nothing. See docs/selecting.md.
func ForResource(op *Operator, spelling ...string) Selection[*Unstructured] {
	selector, err := discovery.Spelled(spelling...)
	if err != nil {
		err = fmt.Errorf("kopf.ForResource(%s): %w", quoteAll(spelling), err)
	}
	return selectionOf[*Unstructured](op, "kopf.ForResource", selector, err)
}

// ForResourceAs is [ForResource] with a Go type: ForResourceAs[*v1.Database](op, name). It need not be in a scheme.
func ForResourceAs[T client.Object](op *Operator, spelling ...string) Selection[T] {
	selector, err := discovery.Spelled(spelling...)
	if err != nil {
		err = fmt.Errorf("kopf.ForResourceAs(%s): %w", quoteAll(spelling), err)
	}
	if typ := reflect.TypeFor[T](); typ.Kind() != reflect.Pointer || typ.Elem().Kind() != reflect.Struct {
		err = fmt.Errorf("kopf.ForResourceAs(%s): %s is not a pointer to a struct, such as *v1.Database",
			quoteAll(spelling), typ)
	}
	return selectionOf[T](op, "kopf.ForResourceAs", selector, err)
}

// ForResourceFunc selects resources for which the function returns true. It is called for each version: check
// r.Preferred. Kopf: a callable as the resource.
func ForResourceFunc(op *Operator, meant func(Resource) bool) Selection[*Unstructured] {
	var err error
	if meant == nil {
		err = errors.New("kopf.ForResourceFunc: the function is nil")
	}
	var told sync.Map
	return selectionOf[*Unstructured](op, "kopf.ForResourceFunc", discovery.ByFunc(func(
		r discovery.Resource) (yes bool,
	) {
		failed := panics.Contain(func() error { yes = meant(resourceOf(r)); return nil })
		if failed == nil {
			return yes
		}
		if _, known := told.LoadOrStore(r.String(), true); !known {
			op.logger().Error(failed,
				"The function of kopf.ForResourceFunc panicked; the resource is not selected",
				append(panics.Stack(failed), "resource", r.String())...)
		}
		return false
	}), err)
}

// selectionOf is a selection by a spelling or a function; or keeps the error of the function that makes it.
func selectionOf[T client.Object](op *Operator, by string, selector discovery.Selector, err error) Selection[T] {
	k := &kind{op: op, location: location()}
	switch {
	case !op.valid():
		k.addError(fmt.Errorf("%s: %w", by, errNoOperator))
	case err != nil:
		k.addError(err)
	default:
		k.find = func(*runtime.Scheme) (discovery.Selector, error) { return selector, nil }
	}
	typ := reflect.TypeFor[T]()
	if typ.Kind() != reflect.Pointer {
		return Selection[T]{kind: k}
	}
	decoder := codec.New[T](typ.Elem())
	k.checkField = decoder.CheckField
	return Selection[T]{kind: k, codec: decoder}
}

// quoteAll returns arguments as Go literals.
func quoteAll(texts []string) string {
	all := make([]string, 0, len(texts))
	for _, text := range texts {
		all = append(all, strconv.Quote(text))
	}
	return strings.Join(all, ", ")
}
