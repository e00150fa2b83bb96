package children

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// mostReads is how many children of one kind are read one by one before they are deleted. More are looked for by one
// list.
const mostReads = 2

// strangers returns the children of a record that remove would leave alone, as they are not there or do not have our
// label, as far as that is cheap to find out. Everybody who may annotate the parent can write a record that lists
// thousands of objects: a request for each of them would be thousands for one edit.
func (k *Keeper) strangers(ctx context.Context, parent map[string]any, listed set) set {
	unproven := map[schema.GroupVersionKind]set{}
	for child, known := range listed {
		if known.uid != "" {
			continue // this process has applied it
		}
		kind := child.in(known.version)
		if unproven[kind] == nil {
			unproven[kind] = set{}
		}
		unproven[kind][child] = known
	}
	found := set{}
	for kind, children := range unproven {
		if len(children) <= mostReads {
			continue
		}
		labelled, err := k.labelled(ctx, parent, kind, children)
		if err != nil {
			continue // without the right to list, each of them is read
		}
		found = found.with(children.without(labelled))
	}
	return found
}

// labelled lists the children of the set that have the label of the parent.
func (k *Keeper) labelled(
	ctx context.Context, parent map[string]any, kind schema.GroupVersionKind, children set,
) (set, error) {
	objects, err := k.listLabelled(ctx, parent, kind, children.namespace())
	if meta.IsNoMatchError(err) {
		return nil, nil // without the kind, no child is there
	}
	if err != nil {
		return nil, err
	}
	found := set{}
	for i := range objects {
		found[identity{kind.Group, kind.Kind, objects[i].Namespace, objects[i].Name}] = entry{}
	}
	return found, nil
}

// listLabelled lists the metadata of the objects of a kind that have the label of the parent, in one namespace or in
// all.
func (k *Keeper) listLabelled(
	ctx context.Context, parent map[string]any, kind schema.GroupVersionKind, namespace string,
) ([]metav1.PartialObjectMetadata, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(kind)
	list.Kind += "List"
	labels := client.MatchingLabels{k.Label(): string(uidOf(parent))}
	err := k.Live.List(ctx, list, labels, client.InNamespace(namespace))
	return list.Items, err
}

// namespace is that of all children; empty if there are several.
func (s set) namespace() (common string) {
	first := true
	for child := range s {
		if !first && child.namespace != common {
			return ""
		}
		common, first = child.namespace, false
	}
	return common
}
