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

// parentLabelName is the name of the label with the parent's uid, without the prefix.
const parentLabelName = "parent-uid"

// markChildren turns the declared objects into children of the parent, in the form in which they are applied. It sets a
// missing namespace to that of the parent, and adds the inherited labels, the label with the parent's uid, and an owner
// reference if the garbage collector accepts it. The error names each invalid child; the valid ones are returned. It
// stops when the context ends.
func (k *Keeper) markChildren(
	ctx context.Context, parent map[string]any, all []declaredChild,
) (marked []declaredChild, err error) {
	owner := &unstructured.Unstructured{Object: parent}
	places, providers := map[identity]string{}, k.providersOf(parent, all)
	var failed []error
	for _, child := range all {
		// A handler can declare thousands of children, and each of them may need a request for its kind.
		if ctx.Err() != nil {
			failed = append(failed, context.Cause(ctx))
			break
		}
		// The namespace is part of the identity, so it is set first.
		err := k.setNamespace(owner, child.object)
		child.identity = identityOf(child.object)
		// Two declarations of one object would overwrite each other with each call.
		if before, twice := places[child.identity]; twice {
			failed = append(failed, fmt.Errorf("%s and %s are both %s: declare it once",
				before, child.position, child.identity))
			continue
		}
		// The digests must not include the marks that are added below.
		child.computeDigests()
		if err == nil {
			err = k.markChild(owner, &child)
		}
		if err != nil {
			failed = append(failed, child.childError(providers.retryIfAwaited(child, err)))
			continue
		}
		places[child.identity] = child.position
		marked = append(marked, child)
	}
	return marked, errors.Join(failed...)
}

// setNamespace sets the namespace of the child. It fails for kinds that the cluster does not serve.
func (k *Keeper) setNamespace(owner, child *unstructured.Unstructured) error {
	kind := child.GroupVersionKind()
	mapping, err := k.Client.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
	switch {
	case meta.IsNoMatchError(err):
		return fmt.Errorf("the cluster has no such kind: install its CRD, or correct its apiVersion: %w", err)
	case err != nil:
		return fmt.Errorf("asking whether it has a namespace: %w", err)
	// A namespace in a cluster-scoped declaration is dropped.
	case mapping.Scope.Name() != meta.RESTScopeNameNamespace:
		child.SetNamespace("")
	case child.GetNamespace() == "" && owner.GetNamespace() == "":
		if assumed, ok := mapping.Scope.(interface{ Advice() string }); ok { // only in tests of handlers
			return fmt.Errorf("%w; %s", errNoNamespace, assumed.Advice())
		}
		return errNoNamespace
	case child.GetNamespace() == "":
		child.SetNamespace(owner.GetNamespace())
	}
	return nil
}

// markChild adds labels, annotations and the owner reference to one child. A retained child has no owner reference,
// because the garbage collector would delete it with the parent.
func (k *Keeper) markChild(owner *unstructured.Unstructured, child *declaredChild) error {
	if child.rules.Retain {
		k.markRetained(owner, child.object)
	} else if canOwn(owner.GetNamespace(), child.identity) {
		if err := hierarchies.AppendOwnerReference(owner, child.object); err != nil {
			return err
		}
	}
	if err := hierarchies.Label(child.object, k.inheritedLabels(owner, child.identity)); err != nil {
		return err
	}
	// The label with the uid replaces one that the handler has set or copied.
	uid := map[string]string{k.ParentLabel(): string(owner.GetUID())}
	return hierarchies.Label(child.object, uid, hierarchies.Forced())
}

// setAnnotation sets an annotation of a child.
func setAnnotation(child *unstructured.Unstructured, key, value string) {
	annotations := child.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[key] = value
	child.SetAnnotations(annotations)
}

// inheritedLabels returns the labels that the child inherits from its owner. Namespaces inherit none by default. With
// LikeKopf, all labels are inherited, as in Kopf.
func (k *Keeper) inheritedLabels(owner *unstructured.Unstructured, child identity) map[string]string {
	switch {
	case k.LikeKopf && !k.NoLabels:
		return owner.GetLabels()
	case k.NoLabels, child.kind == "Namespace" && child.group == "":
		return nil
	}
	return hierarchies.Inherited(owner.GetLabels())
}

// isChildOf reports whether an object on the server is a child of the parent: it has a valid owner reference, or our
// label. The label counts only because the callers take the object from a record of the parent, or have added it to the
// record before.
func (k *Keeper) isChildOf(parent map[string]any, object *metav1.PartialObjectMetadata) bool {
	owner := &unstructured.Unstructured{Object: parent}
	kind := owner.GroupVersionKind().GroupKind()
	// As for the garbage collector, kind, name and namespace of a reference must match as well as its uid.
	return k.isLabelled(uidOf(parent), object) ||
		slices.ContainsFunc(object.OwnerReferences, func(reference metav1.OwnerReference) bool {
			return reference.UID == owner.GetUID() &&
				owned.ReferenceOf(reference).NamesOwner(kind, client.ObjectKeyFromObject(owner), object.Namespace)
		})
}

// isLabelled reports whether the object has our label of the parent. Every applied child has it.
func (k *Keeper) isLabelled(parent types.UID, object *metav1.PartialObjectMetadata) bool {
	return parent != "" && object.Labels[k.ParentLabel()] == string(parent)
}

// isProven reports whether the operator may delete an object that a record lists. The record alone proves nothing,
// because anyone who may annotate the parent can write it. An owner reference is not enough either: other controllers
// set them on objects that they create. So the object must have our label, or this process must have applied it.
func (k *Keeper) isProven(parent map[string]any, object *metav1.PartialObjectMetadata, proven types.UID) bool {
	return k.isLabelled(uidOf(parent), object) || object.UID == proven && k.isChildOf(parent, object)
}

// strangerError returns the error for an object that has the name of a child but is not one. It is temporary if the
// object is a child of another parent. That can be a former parent of the same name, and the garbage collector then
// deletes the child.
func (k *Keeper) strangerError(parent map[string]any, object *metav1.PartialObjectMetadata) error {
	owner := &unstructured.Unstructured{Object: parent}
	former := object.Labels[k.ParentLabel()]
	// This case has its own remedy, because the garbage collector never deletes a retained child.
	if former != string(owner.GetUID()) && k.isRetainedFor(owner, object) {
		return fmt.Errorf("a former object of this name, of uid %s, has left it, as it is to be retained: take it "+
			"over by kopf.AdoptFormer, delete it, or choose another name", former)
	}
	// An owner reference to a former parent of this kind and name identifies such a child even without the label.
	for _, reference := range object.OwnerReferences {
		if reference.Kind == owner.GetKind() && reference.Name == owner.GetName() && former == "" &&
			reference.UID != owner.GetUID() {
			former = string(reference.UID)
		}
	}
	if former != "" {
		return &waitError{fmt.Errorf("it is a child of another object, of uid %s, which may be the former one of this "+
			"name: it is left alone until it is gone; if it is to stay, give it the label %s with the uid %s", former,
			k.ParentLabel(), owner.GetUID())}
	}
	return fmt.Errorf("an object of this name exists, and is not a child of this parent: it has neither an owner "+
		"reference with the uid %s nor the label %s with it; it is not changed: delete it, or choose another name",
		owner.GetUID(), k.ParentLabel())
}

// ParentLabel returns the name of the label with the uid of the parent.
func (k *Keeper) ParentLabel() string { return k.Prefix + "/" + parentLabelName }
