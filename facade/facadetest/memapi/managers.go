package memapi

import (
	"errors"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi/internal/schemas"
)

// merging is what the books on who has set which field are kept by.
type merging struct {
	kind        schema.GroupVersionKind
	subresource string
	schema      *schemas.Version
}

// builtInTypes are those of the kinds that client-go has, read when they are needed first.
var builtInTypes = sync.OnceValue(func() managedfields.TypeConverter {
	return applyconfigurations.NewTypeConverter(scheme.Scheme)
})

// managers keeps the books on who has set which field.
func (s *Server) managers(t target) (*managedfields.FieldManager, error) {
	key := merging{t.groupVersion().WithKind(t.Kind), t.subresource, t.schema}
	if known := s.books[key]; known != nil {
		return known, nil
	}
	construct, types := managedfields.NewDefaultCRDFieldManager, managedfields.NewDeducedTypeConverter()
	var err error
	switch {
	case t.schema != nil:
		types, err = t.schema.Types()
	case scheme.Scheme.Recognizes(key.kind):
		construct, types = managedfields.NewDefaultFieldManager, builtInTypes()
	}
	if err != nil {
		return nil, err
	}
	made, err := construct(types, asIs{}, asIs{}, asIs{}, key.kind, t.groupVersion(), t.subresource, t.resets())
	if err != nil {
		return nil, err
	}
	s.books[key] = made
	return made, nil
}

// resets are the fields that nobody gets to own by the path, as it does not let them through.
func (t target) resets() map[fieldpath.APIVersion]fieldpath.Filter {
	if !t.StatusSubresource {
		return nil
	}
	passed := "status"
	if t.subresource == "status" {
		passed = "spec"
	}
	return fieldpath.NewExcludeFilterSetMap(map[fieldpath.APIVersion]*fieldpath.Set{
		fieldpath.APIVersion(t.groupVersion().String()): fieldpath.NewSet(fieldpath.MakePathOrDie(passed)),
	})
}

// manage updates the managedFields of an object that was ever applied; other objects do not need them. A request may
// change the managedFields themselves, or remove them all.
func (s *Server) manage(t target, before, object map[string]any) error {
	metadata, was := metadataOf(object), metadataOf(before)["managedFields"]
	given := metadata["managedFields"]
	if isReset(given) && t.subresource == "" {
		s.forgotten[metadata["uid"]] = true
	}
	delete(metadata, "managedFields")
	switch {
	case t.managed != nil:
		metadata["managedFields"] = t.managed
		return nil
	case was == nil && (given == nil || isReset(given)):
		return nil
	}
	stated := cloned(object)
	if given != nil {
		metadataOf(stated)["managedFields"] = given
	}
	managed, err := s.updated(t, t.named(cloned(before)), stated)
	if err != nil {
		return err
	}
	if managed != nil {
		metadata["managedFields"] = managed
	}
	return nil
}

// isReset is true for a list without entries, or with an empty one.
func isReset(managed any) bool {
	entries, ok := managed.([]any)
	if ok && len(entries) == 1 {
		only, isEntry := entries[0].(map[string]any)
		return isEntry && len(only) == 0
	}
	return ok && len(entries) == 0
}

// updated are the books after a change.
func (s *Server) updated(t target, before, object map[string]any) (any, error) {
	books, err := s.managers(t)
	if err != nil {
		return nil, err
	}
	changed, err := books.Update(
		&unstructured.Unstructured{Object: t.typed(before)},
		&unstructured.Unstructured{Object: t.typed(t.named(cloned(object)))}, t.manager,
	)
	if err != nil {
		return nil, err
	}
	return metadataOf(contentOf(changed))["managedFields"], nil
}

// typed takes a status away that the types of built-in kinds do not have, as it was stored past them.
func (t target) typed(object map[string]any) map[string]any {
	if t.Plain && !t.StatusSubresource {
		delete(object, "status")
	}
	return object
}

// author is who has made a change, and by which path.
type author struct{ manager, subresource, version string }

// recall reconstructs the managedFields of an object before its first apply, from its history. It returns nil if the
// history is lost, or if a request has removed the managedFields.
func (s *Server) recall(t target, object map[string]any) (any, error) {
	uid := metadataOf(object)["uid"]
	if s.forgotten[uid] {
		return nil, nil
	}
	first := -1
	for i := len(s.history) - 1; i >= 0 && first < 0; i-- {
		if e := s.history[i]; e.of == t.groupResource() && e.before == nil && metadataOf(e.after)["uid"] == uid {
			first = i
		}
	}
	if first < 0 {
		return nil, nil
	}
	var managed any
	for _, e := range s.history[first:] {
		if e.of != t.groupResource() || e.after == nil || metadataOf(e.after)["uid"] != uid {
			continue
		}
		by := t
		by.manager, by.subresource, by.Version = e.by.manager, e.by.subresource, e.by.version
		then := by.named(map[string]any{"metadata": map[string]any{"name": t.name, "namespace": t.namespace}})
		if e.before != nil {
			then = by.shown(e.before)
			metadataOf(then)["managedFields"] = managed
		}
		var err error
		if managed, err = s.updated(by, then, by.read(e.after)); err != nil {
			return nil, err
		}
	}
	return managed, nil
}

func contentOf(object runtime.Object) map[string]any {
	content, ok := object.(*unstructured.Unstructured)
	if !ok {
		return map[string]any{}
	}
	return content.Object
}

// asIs converts between the only version of a kind and itself.
type asIs struct{}

func (asIs) Convert(_, _, _ any) error { return errors.New("there is one version only") }

func (asIs) ConvertToVersion(in runtime.Object, _ runtime.GroupVersioner) (runtime.Object, error) {
	return in, nil
}

func (asIs) ConvertFieldLabel(_ schema.GroupVersionKind, label, value string) (string, string, error) {
	return label, value, nil
}

func (asIs) Default(runtime.Object) {}

func (asIs) New(kind schema.GroupVersionKind) (runtime.Object, error) {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kind)
	return object, nil
}
