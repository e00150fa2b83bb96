package children

import (
	"errors"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/patching"
)

var errFailed = errors.New("it has failed, and is gone: it is made again when its declaration changes")

// noteEnd notes how a child ends that is made until it is done, and is true if that is new.
func (one *application) noteEnd(child *unstructured.Unstructured) bool {
	if !one.child.rules.UntilDone || one.outcome != "" {
		return false
	}
	if one.outcome = outcomeOf(child.Object); one.outcome != "" {
		one.drift = ""
	}
	return one.outcome != ""
}

// runOf is how the child was seen to end in its declaration with this digest.
func (one *application) runOf(digest string) run {
	if one == nil || one.child.digest != digest {
		return run{}
	}
	return run{digest, one.outcome}
}

// isDeleted is true if the child was seen to go before it was done.
func (one *application) isDeleted() bool { return one != nil && one.drift == deleted }

// Unsaved returns the change of the parent that remembers how its children have ended, and the annotations that it
// changes; nil if the records say it all. The error of the change is permanent if the annotations do not fit.
func (k *Keeper) Unsaved(parent map[string]any) (change patching.Transform, annotations []string) {
	ended := k.memory.endedChildren(uidOf(parent))
	maps.DeleteFunc(ended, func(name string, children set) bool {
		kept, err := recorded(parent, name)
		return err != nil || !children.updateOutcomes(kept)
	})
	if len(ended) == 0 {
		return nil, nil
	}
	return func(body map[string]any) error {
		for name, children := range ended {
			kept, err := recorded(body, name)
			if err != nil {
				return err
			}
			if children.updateOutcomes(kept) {
				if err := store(body, k.Prefix, name, kept); err != nil {
					return err
				}
				if err := checkFits(body, name, len(kept)); err != nil {
					return err
				}
			}
		}
		return nil
	}, slices.Sorted(maps.Keys(ended))
}

// updateOutcomes notes in a record how its children have ended, and is true if that was not known.
func (s set) updateOutcomes(kept set) (changed bool) {
	for child, one := range s {
		known, ok := kept[child]
		if now := known.run.then(one.run); ok && now != known.run {
			known.run = now
			kept[child], changed = known, true
		}
	}
	return changed
}

// endedChildren returns the children of a parent that were seen to end, by the names of their records.
func (m *memory) endedChildren(parent types.UID) map[string]set {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := map[string]set{}
	for _, s := range m.sets(parent) {
		for child, one := range s.applied {
			if one.outcome != "" {
				if all[s.record] == nil {
					all[s.record] = set{}
				}
				all[s.record][child] = entry{run: one.runOf(one.child.digest)}
			}
		}
	}
	return all
}

// Ended reports whether an absent child was made until it was done, according to the body of the parent or to the
// memory of this process. A child that has failed is an error. The namespace is ignored for a cluster-scoped kind.
func (k *Keeper) Ended(body map[string]any, kind schema.GroupKind, namespace, name string) (bool, error) {
	records, err := recordsOf(body, k.isRecord)
	if err != nil {
		return false, err
	}
	parent := uidOf(body)
	for record, proven := range k.memory.proven(parent) {
		if records == nil {
			records = map[string]set{}
		}
		records[record] = records[record].proven(proven)
	}
	seen := k.memory.endedChildren(parent)
	for record, children := range records {
		for _, child := range []identity{
			{kind.Group, kind.Kind, namespace, name}, {kind.Group, kind.Kind, "", name},
		} {
			known := children[child].run
			if one := seen[record][child].run; one.digest == known.digest {
				known = known.then(one)
			}
			switch known.outcome {
			case "":
			case failed:
				return false, errFailed
			default:
				return true, nil
			}
		}
	}
	return false, nil
}
