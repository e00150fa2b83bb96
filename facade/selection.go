package kopf

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/codec"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/registry"
	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/discovery"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/internal/panics"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

// Selection is the objects of one kind that pass all filters. Its methods register handlers, or return a new Selection
// with one more filter.
//
// An object that no handler selects gets no finalizer, annotation or log line. One that is selected for the first time
// counts as created. See docs/selecting.md.
type Selection[T client.Object] struct {
	op       *Operator
	kind     *registry.SelectedKind
	codec    *codec.Codec[T]
	filters  []handlers.Filter
	criteria []handlers.Criterion // descriptions of the filters, one for each
	labels   []labels.Requirement // of the filters, as far as a label selector can express them

	filterRequirements []handlers.Requirement // of the filters on other fields
	redactedPaths      []diff.Path
	recheckNotifiers   []handlers.Notifier // indices that the filters read
}

// MatchingLabels selects objects by a label selector of kubectl, such as "tier=prod,!paused". It can reduce the watch:
// see docs/watching.md. Kopf: labels=.
func (s Selection[T]) MatchingLabels(selector string) Selection[T] {
	s, demanded := s.withSelectorFilter("MatchingLabels", "labels", selector, handlers.MatchLabels)
	// Requirements that webhook configurations cannot express by an objectSelector are added as expressions.
	s.labels = append(slices.Clip(s.labels), demanded...)
	return s.withRequirements("labels", slices.DeleteFunc(slices.Clone(demanded), fitsObjectSelector))
}

// MatchingAnnotations is [Selection.MatchingLabels] for annotations. Kopf: annotations=.
func (s Selection[T]) MatchingAnnotations(selector string) Selection[T] {
	s, requirements := s.withSelectorFilter("MatchingAnnotations", "annotations", selector, handlers.MatchAnnotations)
	return s.withRequirements("annotations", requirements)
}

// When selects objects for which the function returns true. The function must be fast and safe for concurrent use. If
// it panics, or the object does not decode into T, the object waits. Kopf: when=.
func (s Selection[T]) When(matches func(ctx context.Context, object T) bool) Selection[T] {
	if matches == nil {
		s.kind.AddError(errors.New("When: the function is nil: without a condition, leave When out"))
		return s
	}
	return s.withFilter(handlers.Criterion{Text: "When"}, func(ctx context.Context, c *cause.Cause) (bool, error) {
		object, err := s.codec.DecodeForFilter(c)
		if err != nil {
			return false, err
		}
		return matches(ctx, object), nil
	})
}

// RecheckOn evaluates the filters again when an index changes, for a [Selection.When] that reads it. See
// docs/watching.md. Kopf: none.
func (s Selection[T]) RecheckOn(indices ...anyIndex) Selection[T] {
	s.recheckNotifiers = slices.Clip(s.recheckNotifiers)
	for _, index := range indices {
		if index == nil || index.changeNotifier() == nil {
			s.kind.AddError(errors.New("RecheckOn: an index is nil: make it with kopf.NewIndex before"))
			continue
		}
		s.recheckNotifiers = append(s.recheckNotifiers, index.changeNotifier())
	}
	return s
}

// anyIndex is an index of any key and value types.
type anyIndex interface{ changeNotifier() handlers.Notifier }

// Redacted stores digests of these fields, as of all Secrets, in the last-handled configuration: c.Diff has no values,
// c.Old zero values. See docs/storages.md. Kopf: none.
func (s Selection[T]) Redacted(paths ...string) Selection[T] {
	for _, text := range paths {
		path, err := codec.ParsePath(text)
		if err == nil && s.codec != nil {
			err = s.codec.CheckPart(path)
		}
		if err != nil {
			s.kind.AddError(fmt.Errorf("Redacted: %w", err))
			continue
		}
		s.redactedPaths = append(slices.Clip(s.redactedPaths), path)
	}
	return s
}

// fitsObjectSelector reports whether an objectSelector of a webhook can express the requirement: Kubernetes label
// selectors in objects lack the operators > and <.
func fitsObjectSelector(r labels.Requirement) bool {
	return r.Operator() != selection.GreaterThan && r.Operator() != selection.LessThan
}

// withRequirements adds the requirements of a selector. They only reduce requests of the API server; the filter
// decides.
func (s Selection[T]) withRequirements(name string, all labels.Requirements) Selection[T] {
	s.filterRequirements = slices.Clip(s.filterRequirements)
	for _, one := range all {
		s.filterRequirements = append(s.filterRequirements, handlers.RequirementFromSelector(name, one))
	}
	return s
}

// withSelectorFilter narrows the selection by a selector over the field metadata.<of>, and returns the requirements of
// the selector.
func (s Selection[T]) withSelectorFilter(
	method, of, text string, filter func(labels.Selector) handlers.Filter,
) (Selection[T], labels.Requirements) {
	selector, err := labels.Parse(text)
	if err != nil {
		s.kind.AddError(fmt.Errorf(
			`%s(%q): invalid selector: %w; write it as for kubectl, such as "tier=prod,!paused"`, method, text, err,
		))
		return s, nil
	}
	demanded, _ := selector.Requirements()
	words := handlers.Criterion{Text: fmt.Sprintf("%s(%q)", method, text), Path: diff.Path{"metadata", of}}
	return s.withFilter(words, filter(selector)), demanded
}

// labelSelector returns the requirements of all filters on labels, as far as a selector can express them; nil without
// any.
func (s Selection[T]) labelSelector() labels.Selector {
	if len(s.labels) == 0 {
		return nil
	}
	return labels.NewSelector().Add(s.labels...)
}

// withFilter returns the selection with one more filter. It clips the slices before it appends: otherwise, two
// selections that are derived from one would write into the same array.
func (s Selection[T]) withFilter(words handlers.Criterion, filter handlers.Filter) Selection[T] {
	s.filters, s.criteria = append(slices.Clip(s.filters), filter), append(slices.Clip(s.criteria), words)
	return s
}

// clients returns the clients of the operator, which change in the set-up and after the startup.
func (s Selection[T]) clients() clientSet { return s.op.clients }

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

// selectResource selects a resource by its spelling. The parameter by is the name of the calling function, for
// messages.
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

// AddError makes the set-up fail with this error, for packages that register handlers. Nil is ignored.
func (s Selection[T]) AddError(err error) {
	if err != nil {
		s.kind.AddError(err)
	}
}
