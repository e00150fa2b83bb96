package children

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-runtime/kopf-runtime/facade/hierarchies"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/owned"
)

var errNoNamespace = errors.New("it has no namespace, and neither has its parent: set one")

// labelName is that of the label with the uid of the parent.
const labelName = "parent-uid"

// mark makes the declared objects children of the parent, as they will be applied: with its namespace if they have
// none, its labels, the label with its uid, and an owner reference where that holds. The error names each child that
// cannot be applied; the others are returned. It stops when the context ends.
func (k *Keeper) mark(
	ctx context.Context, parent map[string]any, all []declared,
) (marked []declared, err error) {
	owner := &unstructured.Unstructured{Object: parent}
	places, providers := map[identity]string{}, k.providers(parent, all)
	var failed []error
	for _, child := range all {
		if ctx.Err() != nil {
			failed = append(failed, context.Cause(ctx))
			break
		}
		err := k.place(owner, child.object)
		child.identity = identityOf(child.object)
		if before, twice := places[child.identity]; twice {
			failed = append(failed, fmt.Errorf("%s and %s are both %s: declare it once",
				before, child.place, child.identity))
			continue
		}
		child.describe()
		if err == nil {
			err = k.markOne(owner, &child)
		}
		if err != nil {
			failed = append(failed, child.failure(providers.awaited(child, err)))
			continue
		}
		places[child.identity] = child.place
		marked = append(marked, child)
	}
	return marked, errors.Join(failed...)
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
		if assumed, ok := mapping.Scope.(interface{ Advice() string }); ok { // in tests of handlers
			return fmt.Errorf("%w; %s", errNoNamespace, assumed.Advice())
		}
		return errNoNamespace
	case child.GetNamespace() == "":
		child.SetNamespace(owner.GetNamespace())
	}
	return nil
}

func (k *Keeper) markOne(owner *unstructured.Unstructured, child *declared) error {
	if child.rules.Retain {
		k.markRetained(owner, child.object)
	} else if owns(owner.GetNamespace(), child.identity) {
		if err := hierarchies.AppendOwnerReference(owner, child.object); err != nil {
			return err
		}
	}
	if err := hierarchies.Label(child.object, k.inherited(owner, child.identity)); err != nil {
		return err
	}
	uid := map[string]string{k.Label(): string(owner.GetUID())}
	return hierarchies.Label(child.object, uid, hierarchies.Forced())
}

// annotate sets an annotation of a child.
func annotate(child *unstructured.Unstructured, key, value string) {
	annotations := child.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[key] = value
	child.SetAnnotations(annotations)
}

// inherited returns the labels of the owner that the child gets.
func (k *Keeper) inherited(owner *unstructured.Unstructured, child identity) map[string]string {
	switch {
	case k.LikeKopf && !k.NoLabels:
		return owner.GetLabels()
	case k.NoLabels, child.kind == "Namespace" && child.group == "":
		return nil
	}
	return hierarchies.Inherited(owner.GetLabels())
}

// isOf is true if an object on the server is a child of the parent: it has an owner reference that holds, or our label
// while a record of this parent lists it. The caller has that record: it comes from one, or has written it before.
func (k *Keeper) isOf(parent map[string]any, object *metav1.PartialObjectMetadata) bool {
	owner := &unstructured.Unstructured{Object: parent}
	kind := owner.GroupVersionKind().GroupKind()
	return k.isLabelled(uidOf(parent), object) ||
		slices.ContainsFunc(object.OwnerReferences, func(reference metav1.OwnerReference) bool {
			return reference.UID == owner.GetUID() &&
				owned.ReferenceOf(reference).Holds(kind, client.ObjectKeyFromObject(owner), object.Namespace)
		})
}

// isLabelled is true if the object has our label of the parent, as all children have that were applied.
func (k *Keeper) isLabelled(parent types.UID, object *metav1.PartialObjectMetadata) bool {
	return parent != "" && object.Labels[k.Label()] == string(parent)
}

// isProven is true if the object is a child that a record lists and that this operator has applied. A record alone
// proves nothing, and others give owner references to what they make, too: an object without the label must have been
// applied by this process.
func (k *Keeper) isProven(parent map[string]any, object *metav1.PartialObjectMetadata, proven types.UID) bool {
	return k.isLabelled(uidOf(parent), object) || object.UID == proven && k.isOf(parent, object)
}

// strangerError is about an object which has the name of a child and is none of the parent. It may go, such as the
// child of a former parent, which the garbage collector deletes.
func (k *Keeper) strangerError(parent map[string]any, object *metav1.PartialObjectMetadata) error {
	owner := &unstructured.Unstructured{Object: parent}
	former := object.Labels[k.Label()]
	if former != string(owner.GetUID()) && k.isRetainedFor(owner, object) {
		return fmt.Errorf("a former object of this name, of uid %s, has left it, as it is to be retained: take it "+
			"over by kopf.AdoptFormer, delete it, or choose another name", former)
	}
	for _, reference := range object.OwnerReferences {
		if reference.Kind == owner.GetKind() && reference.Name == owner.GetName() && former == "" &&
			reference.UID != owner.GetUID() {
			former = string(reference.UID)
		}
	}
	if former != "" {
		return &waitError{fmt.Errorf("it is a child of another object, of uid %s, which may be the former one of this "+
			"name: it is left alone until it is gone; if it is to stay, give it the label %s with the uid %s", former,
			k.Label(), owner.GetUID())}
	}
	return fmt.Errorf("an object of this name exists, and is not a child of this parent: it has neither an owner "+
		"reference with the uid %s nor the label %s with it; it is not changed: delete it, or choose another name",
		owner.GetUID(), k.Label())
}

// Label is the name of the label with the uid of the parent.
func (k *Keeper) Label() string { return k.Prefix + "/" + labelName }
