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

// disown looks away from memory that was copied from another object together with its annotations.
func (p *pass) disown() error {
	p.reading, p.foreign = p.body, nil
	owner, bound := annotationsOf(p.body)[p.boundTo(p.body)].(string)
	if p.BoundTo == "" || !bound || owner == uidOf(p.body) {
		return nil
	}
	merge, err := p.forgetting(p.body)
	patch := patching.Patch{Merge: merge}
	p.foreign = patch.Merge
	// A merge-patch alone cannot fail.
	p.reading, _ = patch.ApplyTo(p.body)
	return err
}

// boundTo is the annotation as it is on this object: a deployment's one is copied to its replica sets over and over.
func (h *Handling) boundTo(body map[string]any) string {
	prefix, name, _ := strings.Cut(h.BoundTo, "/")
	return prefix + "/" + keys.Mark(body, name)
}

// forgetting is the removal of all that we remember on the object. Annotations of users under our prefix are not among
// it.
func (h *Handling) forgetting(body map[string]any) (merge map[string]any, err error) {
	patch := patching.Patch{Merge: map[string]any{}}
	for _, id := range h.owned() {
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
		removal(&patch, nil, places.Merge, body)
	}
	return patch.Merge, err
}

// removal adds to the patch the removal of those places of the object.
func removal(patch *patching.Patch, at []string, places, body map[string]any) {
	for key, place := range places {
		path := append(at[:len(at):len(at)], key)
		held, ok := body[key]
		inner, isMapping := place.(map[string]any)
		into, wasMapping := held.(map[string]any)
		switch {
		case isMapping && wasMapping:
			removal(patch, path, inner, into)
		case ok && !isMapping:
			patch.SetIn(path, nil)
		}
	}
}

// bind says whose memory it is, so that a copy of the object is not taken for it.
func (p *pass) bind(patch *patching.Patch) error {
	uid, key := uidOf(p.body), p.boundTo(p.body)
	if p.BoundTo == "" || uid == "" || annotationsOf(p.body)[key] == uid {
		return nil
	}
	fill(patch.Merge, p.foreign)
	patch.SetIn([]string{"metadata", "annotations", key}, uid)
	prefix, _, _ := strings.Cut(p.BoundTo, "/")
	if !keys.NeedsMarker(prefix) {
		return nil
	}
	return storage.AnnotateOnce(patch.Merge, p.body, keys.MarkerKey(prefix), keys.ManagedValue)
}

// unbind is for an object of which nothing is remembered any more. What was copied from another object stays bound to
// that.
func (p *pass) unbind(patch *patching.Patch) {
	key := p.boundTo(p.body)
	if p.stored == nil && p.foreign == nil && p.BoundTo != "" && annotationsOf(p.body)[key] != nil {
		patch.SetIn([]string{"metadata", "annotations", key}, nil)
	}
}

// fill adds to a merge-patch what another one says of places that it says nothing of.
func fill(patch, other map[string]any) {
	for key, value := range other {
		held, ok := patch[key]
		inner, isMapping := value.(map[string]any)
		into, wasMapping := held.(map[string]any)
		switch {
		case isMapping && !ok:
			into = map[string]any{}
			patch[key] = into
			fill(into, inner)
		case isMapping && wasMapping:
			fill(into, inner)
		case !ok:
			patch[key] = value
		}
	}
}

func uidOf(body map[string]any) string {
	metadata, _ := body["metadata"].(map[string]any)
	uid, _ := metadata["uid"].(string)
	return uid
}
