package memapi

import (
	"net/url"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
)

func (s *Server) get(t target) (map[string]any, error) {
	object, ok := s.objects[t.groupResource()][t.key()]
	if !ok {
		return nil, notFound(t)
	}
	return t.shown(object), nil
}

// shown is an object as this version of the API has it.
func (t target) shown(object map[string]any) map[string]any {
	shown := runtime.DeepCopyJSON(object)
	shown["apiVersion"], shown["kind"] = t.groupVersion().String(), t.Kind
	return shown
}

// interest says which objects a list or a watch is for.
type interest struct {
	namespace string
	labels    labels.Selector
	fields    fields.Selector
}

func (t target) interest(query url.Values) (interest, error) {
	byLabels, err := labels.Parse(query.Get("labelSelector"))
	if err != nil {
		return interest{}, apierrors.NewBadRequest(err.Error())
	}
	byFields, err := fields.ParseSelector(query.Get("fieldSelector"))
	if err != nil {
		return interest{}, apierrors.NewBadRequest(err.Error())
	}
	return interest{t.namespace, byLabels, byFields}, nil
}

func (i interest) matches(object map[string]any) bool {
	o := &unstructured.Unstructured{Object: object}
	return object != nil && (i.namespace == "" || i.namespace == o.GetNamespace()) &&
		i.labels.Matches(labels.Set(o.GetLabels())) &&
		i.fields.Matches(fields.Set{"metadata.name": o.GetName(), "metadata.namespace": o.GetNamespace()})
}

func (s *Server) list(t target, query url.Values) (map[string]any, error) {
	wanted, err := t.interest(query)
	if err != nil {
		return nil, err
	}
	items := []any{}
	for _, object := range s.matching(t, wanted) {
		items = append(items, t.shown(object))
	}
	return map[string]any{
		"kind": t.Kind + "List", "apiVersion": t.groupVersion().String(), "items": items,
		"metadata": map[string]any{"resourceVersion": s.current()},
	}, nil
}

// matching are the objects in the order of their keys.
func (s *Server) matching(t target, wanted interest) []map[string]any {
	var all []map[string]any
	kept := s.objects[t.groupResource()]
	keys := make([]string, 0, len(kept))
	for key := range kept {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	for _, key := range keys {
		if wanted.matches(kept[key]) {
			all = append(all, kept[key])
		}
	}
	return all
}
