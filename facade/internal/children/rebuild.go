package children

import (
	"context"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/storage/keys"
)

// key is the name of a record in the annotation of a child.
func (p *pass) key(name string) string { return strings.TrimPrefix(name, p.keeper.Prefix+"/") }

// nameRecords writes the records of the parent that list the child into an annotation of the child: if this record is
// lost, its children can be told from those of other handlers. All handlers of a child write the same.
func (p *pass) nameRecords(child declared) {
	names := []string{p.key(p.name)}
	if others, err := p.elsewhere(); err == nil { // otherwise, nothing is pruned either
		for _, name := range others[child.identity] {
			names = append(names, p.key(name))
		}
	}
	slices.Sort(names)
	annotations := child.object.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[p.keeper.Prefix+"/"+keys.DeclaredIn] = strings.Join(names, ",")
	child.object.SetAnnotations(annotations)
}

// recordsIn returns what nameRecords has written.
func (k *Keeper) recordsIn(object *metav1.PartialObjectMetadata) string {
	return object.Annotations[k.Prefix+"/"+keys.DeclaredIn]
}

// rebuild returns the children that the record has lost, if it was removed or shortened while no process remembered it:
// a child was there that names this record and that the record did not list. The labelled objects of the same kind and
// namespace that name this record alone are listed again. That is for pruning only: before a child is applied, the
// child itself is checked.
func (p *pass) rebuild(ctx context.Context) set {
	type place struct {
		kind      schema.GroupVersionKind
		namespace string
	}
	found, searched := set{}, map[place]bool{}
	for _, child := range p.missing {
		where := place{child.object.GroupVersionKind(), child.namespace}
		if searched[where] {
			continue
		}
		searched[where] = true
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(where.kind.GroupVersion().WithKind(where.kind.Kind + "List"))
		labels := client.MatchingLabels{p.keeper.Label(): string(uidOf(p.parent.own()))}
		if err := p.keeper.Live.List(ctx, list, labels, client.InNamespace(where.namespace)); err != nil {
			logf.FromContext(ctx).Error(err, "Cannot list the children that a lost record may have listed; leaving them",
				"kind", where.kind.Kind, "namespace", where.namespace)
			continue
		}
		for i := range list.Items {
			one := &list.Items[i]
			if p.keeper.recordsIn(one) == p.key(p.name) {
				found[identity{where.kind.Group, where.kind.Kind, one.Namespace, one.Name}] = entry{version: where.kind.Version}
			}
		}
	}
	if lost := found.without(p.known); len(lost) > 0 {
		logf.FromContext(ctx).Info("Restored a record of children that somebody has removed", "annotation", p.name,
			"children", len(lost))
	}
	return found
}
