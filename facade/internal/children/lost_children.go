package children

import (
	"context"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/internal/keys"
)

// recordKey returns the name of a record without the prefix, as the annotation of a child lists it.
func (p *pass) recordKey(name string) string { return strings.TrimPrefix(name, p.keeper.Prefix+"/") }

// nameRecords writes the names of the records that list the child into an annotation of the child. If this record is
// lost, its children can be distinguished from those of other handlers. All handlers of a child write the same value.
//
// A former version of the operator deletes children with exactly the name of a record that it restores, and does not
// check whether they are retained. So the names on a retained child have a suffix.
func (p *pass) nameRecords(child declaredChild) {
	names := []string{p.recordKey(p.recordName)}
	if others, err := p.otherDeclarers(); err == nil { // after an error, prune deletes nothing either
		for _, name := range others[child.identity] {
			names = append(names, p.recordKey(name))
		}
	}
	// The order must not depend on the handler, or two handlers would change the annotation in turns.
	slices.Sort(names)
	value := strings.Join(names, ",")
	if child.rules.Retain {
		value += retainedSuffix
	}
	setAnnotation(child.object, p.keeper.Prefix+"/"+keys.DeclaredIn, value)
}

// retainedSuffix follows the record names on a retained child.
const retainedSuffix = "," + retainedMark

// recordNames returns the record names on a child, without the suffix.
func (k *Keeper) recordNames(object *metav1.PartialObjectMetadata) string {
	return strings.TrimSuffix(object.Annotations[k.Prefix+"/"+keys.DeclaredIn], retainedSuffix)
}

// findLostChildren returns the children that the record has lost. That happens if a client removes or shortens the
// annotation while the operator is down. It is detected by a child that names this record although the record does not
// list it.
//
// The labelled objects of the same kind and namespace that name only this record are added again. They are used for
// pruning only: before an apply, the child itself is checked.
func (p *pass) findLostChildren(ctx context.Context) childSet {
	found, searched := childSet{}, map[identity]bool{}
	for _, child := range p.lostChildren {
		where := child.identity
		// One list request covers all missing children of a kind and namespace.
		if where.name = ""; searched[where] {
			continue
		}
		searched[where] = true
		some, err := p.searchByLabel(ctx, where, child.object.GroupVersionKind().Version)
		if err != nil {
			logf.FromContext(ctx).Error(err, "Cannot list the children of a lost record; leaving them",
				"kind", where.kind, "namespace", where.namespace)
		}
		found = found.mergedWith(some)
	}
	if lost := found.without(p.knownChildren); len(lost) > 0 {
		logf.FromContext(ctx).Info("Restored a record of children that another client removed", "annotation",
			p.recordName,
			"children", len(lost))
	}
	return found
}

// searchByLabel lists the labelled objects of a kind and namespace that name only this record.
func (p *pass) searchByLabel(ctx context.Context, where identity, version string) (childSet, error) {
	labelled, err := p.keeper.listLabelled(ctx, p.parent.workingCopy(), where.versionedKind(version), where.namespace)
	if err != nil {
		return nil, err
	}
	found := childSet{}
	for i := range labelled {
		// A child of several records belongs to the other handlers as well, so it is left to them.
		if p.isOwnRecord(p.keeper.recordNames(&labelled[i])) {
			where.name = labelled[i].Name
			found[where] = childEntry{version: version, isRetained: p.keeper.retainedBy(&labelled[i]) != ""}
		}
	}
	return found, nil
}
