package children

import (
	"context"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/storage/keys"
)

// key is the name of a record in the annotation of a child.
func (p *pass) key(name string) string { return strings.TrimPrefix(name, p.keeper.Prefix+"/") }

// nameRecords writes the records of the parent that list the child into an annotation of the child: if this record is
// lost, its children can be told from those of other handlers. All handlers of a child write the same.
//
// A former version of the operator deletes children that have exactly the name of a record that it restores, and does
// not check whether they are retained. So the names of a retained child have a suffix.
func (p *pass) nameRecords(child declared) {
	names := []string{p.key(p.name)}
	if others, err := p.elsewhere(); err == nil { // otherwise, nothing is pruned either
		for _, name := range others[child.identity] {
			names = append(names, p.key(name))
		}
	}
	slices.Sort(names)
	value := strings.Join(names, ",")
	if child.rules.Retain {
		value += retainedSuffix
	}
	annotate(child.object, p.keeper.Prefix+"/"+keys.DeclaredIn, value)
}

// retainedSuffix stands behind the names of the records that list a retained child.
const retainedSuffix = "," + retainedMark

// recordsIn returns the names that nameRecords has written.
func (k *Keeper) recordsIn(object *metav1.PartialObjectMetadata) string {
	return strings.TrimSuffix(object.Annotations[k.Prefix+"/"+keys.DeclaredIn], retainedSuffix)
}

// rebuild returns the children that the record has lost, if it was removed or shortened while no process remembered it:
// a child was there that names this record and that the record did not list. The labelled objects of the same kind and
// namespace that name this record alone are listed again. That is for pruning only: before a child is applied, the
// child itself is checked.
func (p *pass) rebuild(ctx context.Context) set {
	found, searched := set{}, map[identity]bool{}
	for _, child := range p.missing {
		where := child.identity
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

// search lists the labelled objects of a kind and a namespace that name this record alone.
func (p *pass) search(ctx context.Context, where identity, version string) (set, error) {
	labelled, err := p.keeper.listLabelled(ctx, p.parent.own(), where.in(version), where.namespace)
	if err != nil {
		return nil, err
	}
	found := set{}
	for i := range labelled {
		if p.isOwn(p.keeper.recordsIn(&labelled[i])) {
			where.name = labelled[i].Name
			found[where] = entry{version: version, retained: p.keeper.retainedBy(&labelled[i]) != ""}
		}
	}
	return found, nil
}
