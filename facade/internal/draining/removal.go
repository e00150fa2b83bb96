package draining

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kopf-runtime/kopf-runtime/storage"
)

// removal is the part of a merge-patch that removes values: a tree whose leaves are nulls.
type removal map[string]any

// addPlaces adds those places of a patch that the body has, if the function accepts their values.
func (r removal) addPlaces(places, body map[string]any, accepts func(value any) bool) {
	for key, place := range places {
		held, ok := body[key]
		inner, isMapping := place.(map[string]any)
		into, wasMapping := held.(map[string]any)
		switch {
		case !ok:
		case isMapping && wasMapping:
			next, _ := r[key].(map[string]any)
			if next == nil {
				if _, whole := r[key]; whole {
					continue // it is removed as a whole
				}
				next = map[string]any{}
			}
			if removal(next).addPlaces(inner, into, accepts); len(next) > 0 {
				r[key] = next
			}
		case !isMapping && accepts(place):
			r[key] = nil
		}
	}
}

// anyValue accepts all places, and nulls only those that a patch removes.
func anyValue(any) bool    { return true }
func nulls(value any) bool { return value == nil }

// addAnnotation adds the annotation if the body has it.
func (r removal) addAnnotation(body map[string]any, name string) {
	r.addMetadata(body, "annotations", name)
}

// addMetadata adds the annotation or the label if the body has it.
func (r removal) addMetadata(body map[string]any, field, name string) {
	r.addPlaces(map[string]any{"metadata": map[string]any{field: map[string]any{name: nil}}}, body, nulls)
}

// annotations returns the names of the annotations in the removal.
func (r removal) annotations() map[string]any {
	names, _, _ := unstructured.NestedFieldNoCopy(r, "metadata", "annotations")
	annotations, _ := names.(map[string]any)
	return annotations
}

// listPlaces returns the sorted names of all places, for people.
func (r removal) listPlaces() (names []string) {
	for pointer := range storage.PatchLeaves(r) {
		path := strings.Split(pointer[1:], "/")
		for i, key := range path {
			path[i] = strings.NewReplacer("~1", "/", "~0", "~").Replace(key)
		}
		switch name := path[len(path)-1]; {
		case len(path) == 3 && path[1] == "annotations":
			names = append(names, "annotation "+name)
		case len(path) == 3 && path[1] == "labels":
			names = append(names, "label "+name)
		default:
			names = append(names, "field "+strings.Join(path, "."))
		}
	}
	slices.Sort(names)
	return names
}

// pruned returns the removal as a merge-patch that also removes the mappings of the body that become empty.
func (r removal) pruned(body map[string]any) map[string]any {
	patch := runtime.DeepCopyJSON(r)
	prune(patch, body)
	return patch
}

// prune replaces mappings by nulls if nothing of the body remains in them. It reports whether anything remains.
func prune(patch, body map[string]any) (remains bool) {
	left := len(body)
	for key, value := range patch {
		inner, isMapping := value.(map[string]any)
		held, _ := body[key].(map[string]any)
		if isMapping && prune(inner, held) {
			continue
		}
		patch[key] = nil
		left--
	}
	return left > 0
}

// missingIn returns the places of a tree that another one does not have. Values that are empty do not count: storages
// also remove empty mappings that others have written.
func missingIn(other, tree map[string]any) map[string]any {
	places := map[string]any{}
	for key, value := range tree {
		inner, isMapping := value.(map[string]any)
		left, ok := other[key]
		rest, _ := left.(map[string]any)
		switch {
		case ok && isMapping && rest != nil:
			if within := missingIn(rest, inner); len(within) > 0 {
				places[key] = within
			}
		case !ok && value != nil && (!isMapping || len(inner) > 0):
			places[key] = nil
		}
	}
	return places
}
