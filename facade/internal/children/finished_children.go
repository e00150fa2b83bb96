package children

import (
	"errors"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-runtime/kopf-runtime/internal/patching"
)

var errChildFailed = errors.New("it has failed, and is gone: it is made again when its declaration changes")

// noteOutcome updates the outcome of a child with UntilDone from its current state. It returns true if the outcome is
// new. A child that is done is no longer repaired.
func (one *appliedChild) noteOutcome(child *unstructured.Unstructured) bool {
	if !one.child.rules.UntilDone || one.outcome != "" {
		return false
	}
	// A finished child is not repaired, so an earlier drift no longer matters.
	if one.outcome = outcomeOf(child.Object); one.outcome != "" {
		one.drift = ""
	}
	return one.outcome != ""
}

// runOf returns the observed run of the child for the declaration with this digest. The run is empty if this process
// has applied another declaration.
func (one *appliedChild) runOf(digest string) childRun {
	if one == nil || one.child.digest != digest {
		return childRun{}
	}
	return childRun{digest, one.outcome}
}

// isDeleted reports whether the child was deleted before it was done. Such a child is created again.
func (one *appliedChild) isDeleted() bool { return one != nil && one.drift == driftDeleted }

// UnsavedRecords returns a change of the parent that stores the outcomes of its children, and the annotations that it
// changes. It returns nil if the records contain all of them. The change fails with a permanent error if the
// annotations exceed their limit.
func (k *Keeper) UnsavedRecords(parent map[string]any) (change patching.Transform, annotations []string) {
	ended := k.memory.endedChildren(uidOf(parent))
	// An unreadable record is skipped here: the next pass of its handler reports the error.
	maps.DeleteFunc(ended, func(name string, children childSet) bool {
		kept, err := readRecord(parent, name)
		return err != nil || !children.updateOutcomes(kept)
	})
	if len(ended) == 0 {
		return nil, nil
	}
	// The change can run on a newer state of the parent than the one above, so it reads the records again.
	return func(body map[string]any) error {
		for name, children := range ended {
			kept, err := readRecord(body, name)
			if err != nil {
				return err
			}
			if children.updateOutcomes(kept) {
				if err := writeRecord(body, k.Prefix, name, kept); err != nil {
					return err
				}
				// An outcome makes the record longer.
				if err := checkFits(body, name, len(kept)); err != nil {
					return err
				}
			}
		}
		return nil
	}, slices.Sorted(maps.Keys(ended))
}

// updateOutcomes copies the outcomes of the set into a record, and reports whether that changes the record. Children
// that are not in the record are not added: they are no longer declared.
func (s childSet) updateOutcomes(kept childSet) (changed bool) {
	for child, one := range s {
		known, ok := kept[child]
		if now := known.run.mergeLater(one.run); ok && now != known.run {
			known.run = now
			kept[child], changed = known, true
		}
	}
	return changed
}

// endedChildren returns the children of a parent with an observed outcome, by the names of their records.
func (m *memory) endedChildren(parent types.UID) map[string]childSet {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := map[string]childSet{}
	for _, s := range m.parentSets(parent) {
		for child, one := range s.appliedChildren {
			// Running children have nothing to store.
			if one.outcome != "" {
				if all[s.recordName] == nil {
					all[s.recordName] = childSet{}
				}
				// Only the run is needed: the record has the rest.
				all[s.recordName][child] = childEntry{run: one.runOf(one.child.digest)}
			}
		}
	}
	return all
}

// IsDone reports whether an absent child with UntilDone is done, according to the body of the parent or to the memory
// of this process. A failed child is an error. For a cluster-scoped kind, the namespace is ignored.
func (k *Keeper) IsDone(body map[string]any, kind schema.GroupKind, namespace, name string) (bool, error) {
	// The records in the body are combined with the proofs: a forged or removed record must not hide an applied child.
	records, err := readRecords(body, k.isRecord)
	if err != nil {
		return false, err
	}
	parent := uidOf(body)
	for record, proven := range k.memory.provenRecords(parent) {
		if records == nil {
			records = map[string]childSet{}
		}
		records[record] = records[record].withProofs(proven)
	}
	seen := k.memory.endedChildren(parent)
	for record, children := range records {
		// The scope of the kind is unknown here, so both identities are looked up.
		for _, child := range []identity{
			{kind.Group, kind.Kind, namespace, name}, {kind.Group, kind.Kind, "", name},
		} {
			known := children[child].run
			// The outcome in memory may belong to a former declaration of the same name.
			if one := seen[record][child].run; one.digest == known.digest {
				known = known.mergeLater(one)
			}
			switch known.outcome {
			case "":
			// The handler must not wait for a child that has failed.
			case outcomeFailed:
				return false, errChildFailed
			default:
				return true, nil
			}
		}
	}
	return false, nil
}
