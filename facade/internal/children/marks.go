package children

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-runtime/kopf-runtime/facade/hierarchies"
)

var errNoNamespace = errors.New("it has no namespace, and neither has its parent: set one")

// labelName is that of the label with the uid of the parent.
const labelName = "parent-uid"

// mark makes the declared objects children of the parent, as all of them will be applied: with its namespace if they
// have none, its labels, the label with its uid, and an owner reference where that holds.
func (k *Keeper) mark(parent map[string]any, all []declared) (set, error) {
	owner := &unstructured.Unstructured{Object: parent}
	wanted, places := set{}, map[identity]string{}
	for i := range all {
		child := &all[i]
		if err := k.place(owner, child.object); err != nil {
			return nil, fmt.Errorf("%s, %s: %w", child.place, identityOf(child.object), err)
		}
		child.identity = identityOf(child.object)
		if before, twice := places[child.identity]; twice {
			return nil, fmt.Errorf("%s and %s are both %s: declare it once", before, child.place, child.identity)
		}
		child.content = contentOf(child.object.Object)
		if err := k.markOne(owner, child); err != nil {
			return nil, fmt.Errorf("%s, %s: %w", child.place, child.identity, err)
		}
		places[child.identity] = child.place
		wanted[child.identity] = entry{version: child.object.GroupVersionKind().Version}
	}
	return wanted, nil
}

// place gives the child its namespace.
func (k *Keeper) place(owner, child *unstructured.Unstructured) error {
	kind := child.GroupVersionKind()
	mapping, err := k.Client.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
	switch {
	case meta.IsNoMatchError(err):
		return fmt.Errorf("the cluster has no such kind: install its CRD, or correct its apiVersion: %w", err)
	case err != nil:
		return fmt.Errorf("asking whether it has a namespace: %w", err)
	case mapping.Scope.Name() != meta.RESTScopeNameNamespace:
		child.SetNamespace("")
	case child.GetNamespace() == "" && owner.GetNamespace() == "":
		return errNoNamespace
	case child.GetNamespace() == "":
		child.SetNamespace(owner.GetNamespace())
	}
	return nil
}

func (k *Keeper) markOne(owner *unstructured.Unstructured, child *declared) error {
	if owns(owner.GetNamespace(), child.identity) {
		if err := hierarchies.AppendOwnerReference(owner, child.object); err != nil {
			return err
		}
	}
	if err := hierarchies.Label(child.object, owner.GetLabels()); err != nil {
		return err
	}
	uid := map[string]string{k.Prefix + "/" + labelName: string(owner.GetUID())}
	return hierarchies.Label(child.object, uid, hierarchies.Forced())
}

// isOf tells whether an object that is there carries the mark of the parent.
func (k *Keeper) isOf(parent types.UID, object *metav1.PartialObjectMetadata) bool {
	for _, reference := range object.OwnerReferences {
		if reference.UID == parent {
			return true
		}
	}
	return object.Labels[k.Prefix+"/"+labelName] == string(parent)
}

// strangerError is about an object which has the name of a child and is none of the parent. It may go, such as the
// child of a former parent, which the garbage collector deletes.
func (k *Keeper) strangerError(parent map[string]any, object *metav1.PartialObjectMetadata) error {
	owner := &unstructured.Unstructured{Object: parent}
	former := object.Labels[k.Prefix+"/"+labelName]
	for _, reference := range object.OwnerReferences {
		if reference.Kind == owner.GetKind() && reference.Name == owner.GetName() && former == "" {
			former = string(reference.UID)
		}
	}
	if former != "" {
		return &waitError{fmt.Errorf("it is a child of another object, of uid %s, which may be the former one of this "+
			"name: it is left alone until it is gone; if it is to stay, give it the label %s with the uid %s", former,
			k.Prefix+"/"+labelName, owner.GetUID())}
	}
	return fmt.Errorf("an object of this name is there, and is no child of this one: it has neither an owner "+
		"reference with uid %s nor the label %s with it; it is left alone: delete it, or choose another name",
		owner.GetUID(), k.Prefix+"/"+labelName)
}

// Label is the name of the label with the uid of the parent.
func (k *Keeper) Label() string { return k.Prefix + "/" + labelName }
