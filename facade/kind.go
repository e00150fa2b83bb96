package kopf

import (
	"errors"
	"fmt"
	"path"
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

// kind is what a selection is of. It is known at the latest when the scheme is: a Go type alone does not say.
type kind struct {
	op       *Operator
	location string
	// find is nil if the selection itself was an error: nothing can be registered for it.
	find func(*runtime.Scheme) (discovery.Selector, error)
	// checkField tells whether objects can have a field, as far as their Go type says.
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

// For selects all objects of a Go type, given by an empty one: For(op, &v1.Database{}). Handlers get objects of that
// type.
//
// The kind is the prototype's, if that has its TypeMeta set, and otherwise the type's in the scheme of the manager;
// under [Main], give the type's AddToScheme to [Settings]. For fields that the type does not have, see
// [Change.Patch].
//
// Of a kind whose handlers are all of events or indices, and of type [metav1.PartialObjectMetadata], nothing but the
// metadata are watched: that is what the API server sends, and what is kept. One handler of another type, or of
// changes, has the whole objects watched.
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
		home := reflect.TypeOf(prototype).Elem().PkgPath()
		return discovery.Selector{}, fmt.Errorf(
			"kopf.For(%T): the manager's scheme does not know the type: call AddToScheme of package %s on the "+
				"scheme, or give kopf.Settings{AddToScheme: runtime.SchemeBuilder{%s.AddToScheme}} to kopf.New: %w",
			prototype, home, path.Base(home), err)
	}
	if err != nil {
		return discovery.Selector{}, fmt.Errorf("kopf.For(%T): finding the kind of the type: %w", prototype, err)
	}
	return discovery.OfKind(found), nil
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
//	ForResource(op, "kind=KopfExample")                 // by keywords, as Kopf's: group, version, and one of
//	ForResource(op, "group=kopf.dev", "shortcut=kex")   // kind, plural, singular, shortcut, category
//
// These mean several resources, all of which get the handlers:
//
//	ForResource(op, "category=all")                     // as kubectl get all
//	ForResource(op, "kopf.dev", Everything)             // all of a group
//	ForResource(op, Everything)                         // all, but Kubernetes events: they would be events on events
//
// Handlers get the objects as they are, unstructured. What the name means is asked of the API server, and again when
// CRDs come and go: without a version, it is the one that the server prefers. Of several resources of one name, that of
// the core group is meant; if there is none, the name is ambiguous, and none of them is handled, by whatever name: a
// line in the log says so. Of several resources that are selected at once, those that cannot be listed, watched and
// patched are left out, the last only if there are handlers that remember something in the object, which those of
// events do not. One that the operator may not list or watch is named in the log, and the others are handled.
//
// The watch on CRDs needs the permission to list and watch customresourcedefinitions of apiextensions.k8s.io; without
// it, new kinds are looked for at intervals.
func ForResource(op *Operator, spelling ...string) Selection[*Unstructured] {
	selector, err := discovery.Spelled(spelling...)
	if err != nil {
		err = fmt.Errorf("kopf.ForResource(%s): %w", quoteAll(spelling), err)
	}
	return selectionOf[*Unstructured](op, "kopf.ForResource", selector, err)
}

// ForResourceAs is [ForResource] with a Go type for the objects: ForResourceAs[*v1.Database](op, "databases"), such as
// for a name that is known only when the program runs. The type need not be in a scheme. An object that does not decode
// into the type fails alone, so the type should fit all resources that the spelling means.
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

// ForResourceFunc selects all objects of all resources for which the function is true. It is asked about every resource
// in every version, so it should look at Preferred, or at a version; if several versions of a resource are chosen, it
// is handled in one. It must be fast, and always say the same of the same resource; a panic is a false, told once for
// each resource. Kopf: a callable in the place of the resource.
func ForResourceFunc(op *Operator, meant func(Resource) bool) Selection[*Unstructured] {
	var err error
	if meant == nil {
		err = errors.New("kopf.ForResourceFunc: the function is nil")
	}
	var told sync.Map
	return selectionOf[*Unstructured](op, "kopf.ForResourceFunc", discovery.ByFunc(func(r discovery.Resource) (yes bool) {
		failed := containPanic(func() { yes = meant(resourceOf(r)) })
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

// quoteAll gives arguments as they stand in Go.
func quoteAll(texts []string) string {
	all := make([]string, 0, len(texts))
	for _, text := range texts {
		all = append(all, strconv.Quote(text))
	}
	return strings.Join(all, ", ")
}
