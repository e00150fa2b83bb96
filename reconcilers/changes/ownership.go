package changes

import (
	"errors"
	"strings"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/patching"
	"github.com/kopf-runtime/kopf-runtime/storage"
	"github.com/kopf-runtime/kopf-runtime/storage/diffbase"
	"github.com/kopf-runtime/kopf-runtime/storage/keys"
)

// separateForeignMemory leaves out of own what was copied from another object together with its annotations.
func (o *object) separateForeignMemory() error {
	o.own, o.foreign = o.body, nil
	owner, bound := annotationsOf(o.body)[o.handling.boundTo(o.body)].(string)
	if o.handling.BoundTo == "" || !bound || owner == patching.UIDOf(o.body) {
		return nil
	}
	merge, err := o.handling.removalOfMemory(o.body)
	patch := patching.Patch{Merge: merge}
	o.foreign = patch.Merge
	// A merge-patch alone cannot fail.
	o.own, _ = patch.ApplyTo(o.body)
	return err
}

// boundTo is the annotation as it is on this object: a deployment's one is copied to its replica sets over and over.
func (h *Handling) boundTo(body map[string]any) string {
	prefix, name, _ := strings.Cut(h.BoundTo, "/")
	return prefix + "/" + keys.Mark(body, name)
}

// removalOfMemory is a merge-patch that removes all that we remember on the object. Annotations of users under our
// prefix are not among it.
func (h *Handling) removalOfMemory(body map[string]any) (merge map[string]any, err error) {
	patch := patching.Patch{Merge: map[string]any{}}
	for _, id := range h.IDs() {
		if record, malformed := h.Progress.Fetch(body, id); malformed == nil && record != nil {
			for _, sub := range record.Subrefs {
				err = errors.Join(err, execution.Purge(h.Progress, patch.Merge, body, sub))
			}
		}
		err = errors.Join(err, execution.Purge(h.Progress, patch.Merge, body, id))
	}
	h.Interim.Purge(&patch, body)
	// A storage of essences has no removal; but what it would write shows where it keeps them.
	places := patching.Patch{Merge: map[string]any{}}
	if err := h.Lens.Diffbase.Store(places.Merge, body, diffbase.Essence{}); err == nil {
		addRemoval(&patch, nil, places.Merge, body)
	}
	return patch.Merge, err
}

// addRemoval adds to the patch the removal of those places of the object.
func addRemoval(patch *patching.Patch, at []string, places, body map[string]any) {
	for key, place := range places {
		path := append(at[:len(at):len(at)], key)
		held, ok := body[key]
		inner, isMapping := place.(map[string]any)
		into, wasMapping := held.(map[string]any)
		switch {
		case isMapping && wasMapping:
			addRemoval(patch, path, inner, into)
		case ok && !isMapping:
			patch.SetIn(path, nil)
		}
	}
}

// bind says whose memory it is, so that a copy of the object is not taken for it.
func (o *object) bind(patch *patching.Patch) error {
	uid, key := patching.UIDOf(o.body), o.handling.boundTo(o.body)
	if o.handling.BoundTo == "" || uid == "" || annotationsOf(o.body)[key] == uid {
		return nil
	}
	fillIn(patch.Merge, o.foreign)
	patch.SetIn([]string{"metadata", "annotations", key}, uid)
	prefix, _, _ := strings.Cut(o.handling.BoundTo, "/")
	if !keys.NeedsMarker(prefix) {
		return nil
	}
	return storage.AnnotateOnce(patch.Merge, o.body, keys.MarkerKey(prefix), keys.ManagedValue)
}

// unbind is for an object of which nothing is remembered any more. What was copied from another object stays bound to
// that.
func (o *object) unbind(patch *patching.Patch) {
	key := o.handling.boundTo(o.body)
	if o.foreign == nil && o.handling.BoundTo != "" && annotationsOf(o.body)[key] != nil {
		patch.SetIn([]string{"metadata", "annotations", key}, nil)
	}
}

// fillIn adds to a merge-patch what another one says of places that it says nothing of.
func fillIn(patch, other map[string]any) {
	for key, value := range other {
		held, ok := patch[key]
		inner, isMapping := value.(map[string]any)
		into, wasMapping := held.(map[string]any)
		switch {
		case isMapping && !ok:
			into = map[string]any{}
			patch[key] = into
			fillIn(into, inner)
		case isMapping && wasMapping:
			fillIn(into, inner)
		case !ok:
			patch[key] = value
		}
	}
}
