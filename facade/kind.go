package kopf

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
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
	"github.com/kopf-runtime/kopf-runtime/facade/internal/registry"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/discovery"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/panics"
)

// newKind returns the kind of a selection that the user makes by the current call.
func newKind(op *Operator) *registry.SelectedKind {
	k := &registry.SelectedKind{Location: registry.CallerLocation()}
	if op != nil {
		k.Registry = &op.registry
	}
	return k
}

// For selects all objects of a Go type: For(op, &v1.Database{}). The kind comes from the TypeMeta of the prototype, or
// else from the scheme: with [Main], set AddToScheme in [Settings]. For [metav1.PartialObjectMetadata], see
// docs/watching.md.
func For[T client.Object](op *Operator, prototype T) Selection[T] {
	k := newKind(op)
	typ := reflect.TypeOf(prototype)
	switch {
	case !op.isValid():
		k.AddError(fmt.Errorf("kopf.For: %w", errNoOperator))
	case typ == nil || typ.Kind() != reflect.Pointer || reflect.ValueOf(prototype).IsNil():
		k.AddError(errors.New("kopf.For: the prototype is nil: give it an empty object, such as &v1.Database{}"))
	case lacksKind(prototype):
		k.AddError(fmt.Errorf(
			"kopf.For(%T): the prototype has no apiVersion and kind, and its type does not say them: set both, or "+
				`select by a name: kopf.ForResource(op, "databases")`, prototype))
	default:
		given := prototype.GetObjectKind().GroupVersionKind()
		k.Find = func(scheme *runtime.Scheme) (discovery.Selector, error) {
			return selectorOfType(prototype, given, scheme)
		}
		decoder := codec.New[T](typ.Elem())
		k.CheckField = decoder.CheckField
		return Selection[T]{op: op, kind: k, codec: decoder}
	}
	return Selection[T]{op: op, kind: k}
}

// lacksKind reports whether the prototype can be of any kind, and lacks its kind.
func lacksKind(prototype client.Object) bool {
	switch prototype.(type) {
	case *unstructured.Unstructured, *metav1.PartialObjectMetadata:
		given := prototype.GetObjectKind().GroupVersionKind()
		return given.Version == "" || given.Kind == ""
	default:
		return false
	}
}

// selectorOfType returns the kind in the prototype, or else the kind of its Go type in the scheme. It runs at the
// set-up, when the scheme is known.
func selectorOfType(
	prototype client.Object, given schema.GroupVersionKind, scheme *runtime.Scheme,
) (discovery.Selector, error) {
	if given.Version != "" && given.Kind != "" {
		return discovery.OfKind(given), nil
	}
	found, err := apiutil.GVKForObject(prototype, scheme)
	if runtime.IsNotRegisteredError(err) {
		goType := reflect.TypeOf(prototype).Elem()
		name, _, _ := strings.Cut(goType.String(), ".") // of the package, which can differ from its folder
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
	return selectResource[*Unstructured](op, "kopf.ForResource", spelling)
}

// ForResourceAs is [ForResource] with a Go type: ForResourceAs[*v1.Database](op, name). It need not be in a scheme.
func ForResourceAs[T client.Object](op *Operator, spelling ...string) Selection[T] {
	return selectResource[T](op, "kopf.ForResourceAs", spelling)
}

// selectResource selects a resource by its spelling. The parameter by is the name of the calling function, for messages.
func selectResource[T client.Object](op *Operator, by string, spelling []string) Selection[T] {
	selector, err := discovery.ParseSpelling(spelling...)
	if typ := reflect.TypeFor[T](); typ.Kind() != reflect.Pointer || typ.Elem().Kind() != reflect.Struct {
		err = fmt.Errorf("%s is not a pointer to a struct, such as *v1.Database", typ)
	}
	if err != nil {
		err = fmt.Errorf("%s(%s): %w", by, quoteAll(spelling), err)
	}
	return newSelection[T](op, by, selector, err)
}

// ForResourceFunc selects resources for which the function returns true. It is called for each version: check
// r.Preferred. Kopf: a callable as the resource.
func ForResourceFunc(op *Operator, meant func(Resource) bool) Selection[*Unstructured] {
	var err error
	if meant == nil {
		err = errors.New("kopf.ForResourceFunc: the function is nil")
	}
	// The resources whose panic is already logged. The function runs at each discovery, possibly concurrently.
	var told sync.Map
	return newSelection[*Unstructured](op, "kopf.ForResourceFunc", discovery.ByFunc(func(
		r discovery.Resource) (yes bool,
	) {
		failed := panics.Contain(func() error { yes = meant(resourceOf(r)); return nil })
		if failed == nil {
			return yes
		}
		if _, known := told.LoadOrStore(r.String(), true); !known {
			op.namedLogger().Error(failed,
				"The function of kopf.ForResourceFunc panicked; the resource is not selected",
				append(panics.StackFields(failed), "resource", r.String())...)
		}
		return false
	}), err)
}

// newSelection returns a selection by a selector that does not need the scheme, or records err.
func newSelection[T client.Object](op *Operator, by string, selector discovery.Selector, err error) Selection[T] {
	k := newKind(op)
	switch {
	case !op.isValid():
		k.AddError(fmt.Errorf("%s: %w", by, errNoOperator))
	case err != nil:
		k.AddError(err)
	default:
		k.Find = func(*runtime.Scheme) (discovery.Selector, error) { return selector, nil }
	}
	typ := reflect.TypeFor[T]()
	// The error is recorded already, and a codec needs a pointer type.
	if typ.Kind() != reflect.Pointer {
		return Selection[T]{op: op, kind: k}
	}
	decoder := codec.New[T](typ.Elem())
	k.CheckField = decoder.CheckField
	return Selection[T]{op: op, kind: k, codec: decoder}
}

// quoteAll returns the arguments as Go literals for messages.
func quoteAll(texts []string) string {
	all := make([]string, 0, len(texts))
	for _, text := range texts {
		all = append(all, strconv.Quote(text))
	}
	return strings.Join(all, ", ")
}

// Resource is one version of a resource. Kopf: Resource.
type Resource struct {
	schema.GroupVersionKind
	// Plural is the name in URLs.
	Plural, Singular string
	// Shortcuts are short names; Categories are groups such as "all".
	Shortcuts, Categories []string
	// Subresources are names such as "status".
	Subresources []string
	// Namespaced is false for cluster-scoped resources.
	Namespaced bool
	// Preferred marks the API server's preferred version.
	Preferred bool
	// Verbs are names such as "list".
	Verbs []string
}

// GroupVersionResource returns the name in client-go.
func (r Resource) GroupVersionResource() schema.GroupVersionResource {
	return r.GroupVersion().WithResource(r.Plural)
}

// String returns group/version/plural.
func (r Resource) String() string { return discovery.Resource(r).String() }

// resourceOf returns a copy that does not share slices with the discovered resource.
func resourceOf(r discovery.Resource) Resource {
	r.Shortcuts, r.Categories = slices.Clone(r.Shortcuts), slices.Clone(r.Categories)
	r.Subresources, r.Verbs = slices.Clone(r.Subresources), slices.Clone(r.Verbs)
	return Resource(r)
}
