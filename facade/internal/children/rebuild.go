package children

import (
	"context"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/storage/keys"
)

// key returns the name of a record without the prefix, as the annotation of a child lists it.
func (p *pass) key(name string) string { return strings.TrimPrefix(name, p.keeper.Prefix+"/") }

// nameRecords writes the names of the records that list the child into an annotation of the child. If this record is
// lost, its children can be distinguished from those of other handlers. All handlers of a child write the same value.
//
// A former version of the operator deletes children with exactly the name of a record that it restores, and does not
// check whether they are retained. So the names on a retained child have a suffix.
func (p *pass) nameRecords(child declared) {
	names := []string{p.key(p.name)}
	if others, err := p.elsewhere(); err == nil { // after an error, prune deletes nothing either
		for _, name := range others[child.identity] {
			names = append(names, p.key(name))
		}
	}
	// The order must not depend on the handler, or two handlers would change the annotation in turns.
	slices.Sort(names)
	value := strings.Join(names, ",")
	if child.rules.Retain {
		value += retainedSuffix
	}
	annotate(child.object, p.keeper.Prefix+"/"+keys.DeclaredIn, value)
}

// retainedSuffix follows the record names on a retained child.
const retainedSuffix = "," + retainedMark

// recordsIn returns the record names on a child, without the suffix.
func (k *Keeper) recordsIn(object *metav1.PartialObjectMetadata) string {
	return strings.TrimSuffix(object.Annotations[k.Prefix+"/"+keys.DeclaredIn], retainedSuffix)
}

// rebuild returns the children that the record has lost. That happens if a client removes or shortens the annotation
// while the operator is down. It is detected by a child that names this record although the record does not list it.
//
// The labelled objects of the same kind and namespace that name only this record are added again. They are used for
// pruning only: before an apply, the child itself is checked.
func (p *pass) rebuild(ctx context.Context) set {
	found, searched := set{}, map[identity]bool{}
	for _, child := range p.missing {
		where := child.identity
		// One list request covers all missing children of a kind and namespace.
		if where.name = ""; searched[where] {
			continue
		}
		searched[where] = true
		some, err := p.search(ctx, where, child.object.GroupVersionKind().Version)
		if err != nil {
			logf.FromContext(ctx).Error(err, "Cannot list the children of a lost record; leaving them",
				"kind", where.kind, "namespace", where.namespace)
		}
		found = found.with(some)
	}
	if lost := found.without(p.known); len(lost) > 0 {
		logf.FromContext(ctx).Info("Restored a record of children that another client removed", "annotation", p.name,
			"children", len(lost))
	}
	return found
}

// search lists the labelled objects of a kind and namespace that name only this record.
func (p *pass) search(ctx context.Context, where identity, version string) (set, error) {
	labelled, err := p.keeper.listLabelled(ctx, p.parent.own(), where.in(version), where.namespace)
	if err != nil {
		return nil, err
	}
	found := set{}
	for i := range labelled {
		// A child of several records belongs to the other handlers as well, so it is left to them.
		if p.isOwn(p.keeper.recordsIn(&labelled[i])) {
			where.name = labelled[i].Name
			found[where] = entry{version: version, retained: p.keeper.retainedBy(&labelled[i]) != ""}
		}
	}
	return found, nil
}
