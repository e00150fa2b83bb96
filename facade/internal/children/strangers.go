package children

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// maxSingleReads is the number of children of one kind that are read one by one before a deletion. For more of them,
// one list request is cheaper.
const maxSingleReads = 2

// findStrangers returns the listed children that [Keeper.deleteListed] would leave alone: they do not exist or do not
// have our label. Anyone who may annotate the parent can write a record that lists thousands of objects. Without this
// check, one such edit would cause thousands of requests. Up to maxSingleReads children per kind are not checked.
func (k *Keeper) findStrangers(ctx context.Context, parent map[string]any, listed childSet) childSet {
	unproven := map[schema.GroupVersionKind]childSet{}
	for child, known := range listed {
		if known.uid != "" {
			continue // this process has applied it
		}
		// One list request covers one version of one kind.
		kind := child.versionedKind(known.version)
		if unproven[kind] == nil {
			unproven[kind] = childSet{}
		}
		unproven[kind][child] = known
	}
	found := childSet{}
	for kind, children := range unproven {
		if len(children) <= maxSingleReads {
			continue
		}
		labelled, err := k.labelledChildren(ctx, parent, kind, children)
		if err != nil {
			continue // without permission to list, each of them is read
		}
		found = found.mergedWith(children.without(labelled))
	}
	return found
}

// labelledChildren returns the existing objects of a kind that have the label of the parent, in the namespaces of the
// children.
func (k *Keeper) labelledChildren(
	ctx context.Context, parent map[string]any, kind schema.GroupVersionKind, children childSet,
) (childSet, error) {
	objects, err := k.listLabelled(ctx, parent, kind, children.commonNamespace())
	if meta.IsNoMatchError(err) {
		return nil, nil // the kind is not served, so no child exists
	}
	if err != nil {
		return nil, err
	}
	found := childSet{}
	for i := range objects {
		found[identity{kind.Group, kind.Kind, objects[i].Namespace, objects[i].Name}] = childEntry{}
	}
	return found, nil
}

// listLabelled lists the metadata of the objects of a kind that have the label of the parent. An empty namespace means
// all namespaces. The list comes from the API server, not from the cache.
func (k *Keeper) listLabelled(
	ctx context.Context, parent map[string]any, kind schema.GroupVersionKind, namespace string,
) ([]metav1.PartialObjectMetadata, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(kind)
	list.Kind += "List"
	labels := client.MatchingLabels{k.ParentLabel(): string(uidOf(parent))}
	err := k.APIReader.List(ctx, list, labels, client.InNamespace(namespace))
	return list.Items, err
}

// commonNamespace returns the common namespace of all children; empty if they have several, so that a list covers all
// of them.
func (s childSet) commonNamespace() (common string) {
	first := true
	for child := range s {
		if !first && child.namespace != common {
			return ""
		}
		common, first = child.namespace, false
	}
	return common
}
