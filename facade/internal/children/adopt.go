package children

import (
	"fmt"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/kopf-runtime/kopf-runtime/facade/hierarchies"
	"github.com/kopf-runtime/kopf-runtime/internal/logging"
)

// Adopt prepares objects, or lists of them, to be created as children of the owner. It sets owner references,
// namespaces, names and labels in memory and writes nothing. The client resolves the scopes of kinds. A nil keeper has
// no settings; with a nil client, scopes are not checked.
//
// A child that the owner cannot own is an error. With LikeKopf, it is only a warning, as in Kopf.
func (k *Keeper) Adopt(owner *unstructured.Unstructured, given []any, c client.Client, log logr.Logger) error {
	var options []hierarchies.AdoptOption
	if k != nil && k.LikeKopf {
		options = append(options, hierarchies.LikeKopf(func(err error) {
			logging.Warn(log, "Adopting a child that the object cannot own", "reason", err.Error())
		}))
	} else if err := checkScopes(owner.GetNamespace(), given, c); err != nil {
		return err
	}
	if k != nil && k.NoLabels {
		options = append(options, hierarchies.NoLabels())
	}
	return hierarchies.Adopt(k.withoutParentLabel(owner), given, options...)
}

// withoutParentLabel returns the owner without the label of Ensure's children. A parent can have this label itself, if
// it is a child of another object. It must not pass the label on to objects that Ensure has not declared. The owner is
// copied before the label is removed, because it is shared.
func (k *Keeper) withoutParentLabel(owner *unstructured.Unstructured) *unstructured.Unstructured {
	if k == nil || k.LikeKopf {
		return owner
	}
	labels := owner.GetLabels()
	if _, labelled := labels[k.ParentLabel()]; !labelled {
		return owner
	}
	// GetLabels returns a copy, so only the owner itself must be copied.
	owner = owner.DeepCopy()
	delete(labels, k.ParentLabel())
	owner.SetLabels(labels)
	return owner
}

// checkScopes returns an error for the first cluster-scoped child of a namespaced owner: the garbage collector would
// delete such a child. Kinds that are unknown to the cluster or the scheme are not checked; creating the child reports
// these.
func checkScopes(namespace string, given any, c client.Client) error {
	// A cluster-scoped owner can own every object.
	if namespace == "" || c == nil {
		return nil
	}
	for object, err := range hierarchies.Objects(given) {
		if err != nil {
			return err
		}
		if raw, ok := object.(map[string]any); ok {
			object = &unstructured.Unstructured{Object: raw}
		}
		child, ok := object.(client.Object)
		if !ok {
			continue
		}
		kind, err := apiutil.GVKForObject(child, c.Scheme())
		if err != nil {
			continue // the kind is unknown, so the scope is unknown too
		}
		// A failed lookup is not an error here: the later create request reports an unknown kind.
		mapping, err := c.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
		if err == nil && mapping.Scope.Name() == meta.RESTScopeNameRoot {
			return fmt.Errorf("adopting %s %q: an object with a namespace cannot own a cluster-scoped one, and the "+
				"garbage collector deletes it: declare it by c.Ensure, or leave the owner out",
				kind.Kind, child.GetName())
		}
	}
	return nil
}
