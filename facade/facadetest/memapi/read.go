package memapi

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
)

// getObject returns an object, if the server has reached the requested version.
func (s *Server) getObject(t target, version string) (map[string]any, error) {
	if _, err := parseVersion(version); version != "" && err != nil {
		return nil, internalError(err)
	}
	if err := s.checkVersionReached(version); err != nil {
		return nil, err
	}
	object, ok := s.objects[t.groupResource()][t.objectKey()]
	if !ok {
		return nil, notFound(t)
	}
	return t.servedObject(object), nil
}

// servedObject returns a stored object in the version of the request, with apiVersion and kind. It is a copy.
func (t target) servedObject(object map[string]any) map[string]any {
	shown := t.readStored(object)
	shown["apiVersion"], shown["kind"] = t.groupVersion().String(), t.Kind
	return shown
}

// objectFilter holds the selectors of a list or a watch.
type objectFilter struct {
	namespace string
	labels    labels.Selector
	fields    fields.Selector
	shards    shardSelector
	// selectable maps the fields of the selector to their paths.
	selectable map[string][]string
}

// parseInterest parses the selectors of a list or a watch. It refuses fields that the kind does not support.
func (s *Server) parseInterest(t target, query url.Values) (objectFilter, error) {
	byLabels, err := labels.Parse(query.Get("labelSelector"))
	if err != nil {
		return objectFilter{}, apierrors.NewBadRequest(err.Error())
	}
	byFields, err := fields.ParseSelector(query.Get("fieldSelector"))
	if err != nil {
		return objectFilter{}, apierrors.NewBadRequest(err.Error())
	}
	shards, err := s.parseShards(query.Get("shardSelector"))
	if err != nil {
		return objectFilter{}, err
	}
	// These two fields can be selected for every kind.
	i := objectFilter{t.namespace, byLabels, byFields, shards, map[string][]string{
		"metadata.name": {"metadata", "name"}, "metadata.namespace": {"metadata", "namespace"},
	}}
	for _, wanted := range byFields.Requirements() {
		// Several requirements may be about one field.
		if i.selectable[wanted.Field] != nil {
			continue
		}
		path := t.selectorPath(wanted.Field)
		if path == nil {
			return objectFilter{}, t.unselectableError(wanted.Field)
		}
		i.selectable[wanted.Field] = path
	}
	return i, nil
}

// builtInFields lists the fields, beside the name and the namespace, by which the real server selects objects of
// built-in kinds.
var builtInFields = map[string][]string{
	"Pod": {
		"spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName", "status.phase",
		"status.podIP", "status.nominatedNodeName",
	},
	"Secret": {"type"}, "Namespace": {"status.phase"}, "Node": {"spec.unschedulable"}, "Job": {"status.successful"},
	"Event": {
		"involvedObject.kind", "involvedObject.namespace", "involvedObject.name", "involvedObject.uid",
		"involvedObject.apiVersion", "involvedObject.resourceVersion", "involvedObject.fieldPath", "reason",
		"reportingComponent", "source", "type",
	},
}

// selectorPath returns the path of a field in stored objects, or nil if the kind does not support the field in
// selectors.
func (t target) selectorPath(name string) []string {
	// Events are stored in the form of the core API, so the field names of the newer API are translated.
	if first, rest, _ := strings.Cut(name, "."); t.isNewEvent() && eventFields[first] != "" {
		name = strings.TrimSuffix(eventFields[first]+"."+rest, ".")
	} else if t.isNewEvent() && name != "reason" && name != "type" {
		return nil
	}
	switch {
	case t.schema != nil && t.schema.Selects(name), t.Plain && slices.Contains(builtInFields[t.Kind], name):
		return strings.Split(name, ".")
	default:
		return nil
	}
}

// unselectableError returns the error for an unsupported field. The messages of the real server differ for kinds
// without any selectable field.
func (t target) unselectableError(name string) error {
	if t.Plain && builtInFields[t.Kind] == nil {
		return apierrors.NewBadRequest(fmt.Sprintf(
			`%q is not a known field selector: only "metadata.name", "metadata.namespace"`, name,
		))
	}
	return apierrors.NewBadRequest("field label not supported: " + name)
}

// matchesObject reports whether an object is selected. A nil object, such as the former state of a new one, is not.
func (i objectFilter) matchesObject(object map[string]any) bool {
	o := &unstructured.Unstructured{Object: object}
	return object != nil && (i.namespace == "" || i.namespace == o.GetNamespace()) &&
		i.labels.Matches(labels.Set(o.GetLabels())) && (i.fields.Empty() || i.fields.Matches(i.fieldValues(object))) &&
		i.shards.matchesObject(o)
}

// isInScope reports whether an object is among those that the real server looks through for a list: those of the
// namespace, or the one with the requested name.
func (i objectFilter) isInScope(object map[string]any) bool {
	o := &unstructured.Unstructured{Object: object}
	name, hasName := i.fields.RequiresExactMatch("metadata.name")
	// The namespace is empty for lists of all namespaces, and for cluster-scoped kinds.
	return (i.namespace == "" || i.namespace == o.GetNamespace()) &&
		(!hasName || name == o.GetName() || i.namespace != o.GetNamespace())
}

// fieldValues returns the values of the selector's fields. A missing field counts as empty.
func (i objectFilter) fieldValues(object map[string]any) fields.Set {
	values := fields.Set{}
	// Values are compared as text, like in the real server.
	for name, path := range i.selectable {
		values[name] = ""
		if value, ok, _ := unstructured.NestedFieldNoCopy(object, path...); ok {
			values[name] = fmt.Sprint(value)
		}
	}
	return values
}

// listObjects answers a list: its first page, or the page that belongs to a continue token.
func (s *Server) listObjects(t target, query url.Values) (map[string]any, error) {
	options, err := listOptions(query, false)
	if err != nil {
		return nil, err
	}
	wanted, err := s.parseInterest(t, query)
	if err != nil {
		return nil, err
	}
	// The token stands for the remaining objects.
	if options.Continue != "" {
		return s.nextPage(t, wanted, options)
	}
	return s.firstPage(t, wanted, options)
}

// listOf returns a list with the current resource version.
func (s *Server) listOf(t target, items []any) map[string]any {
	return map[string]any{
		"kind": t.Kind + "List", "apiVersion": t.groupVersion().String(), "items": items,
		"metadata": map[string]any{"resourceVersion": s.currentVersion()},
	}
}

// matchingObjects returns the selected objects in the order of their keys, like the real server. They are not copies.
func (s *Server) matchingObjects(t target, wanted objectFilter) []map[string]any {
	return s.objectsWith(t, wanted.matchesObject)
}

// objectsWith returns the objects for which a function returns true, in the order of their keys. They are not copies.
func (s *Server) objectsWith(t target, isWanted func(map[string]any) bool) []map[string]any {
	var all []map[string]any
	kept := s.objects[t.groupResource()]
	for _, key := range slices.Sorted(maps.Keys(kept)) {
		if isWanted(kept[key]) {
			all = append(all, kept[key])
		}
	}
	return all
}
