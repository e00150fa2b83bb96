package children

import (
	"fmt"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/kopf-runtime/kopf-runtime/facade/hierarchies"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/logging"
)

// Adopt prepares objects, or lists of them, to be created as children of the owner. The client finds the scopes of
// kinds. A nil keeper, and a nil client, have no settings and do not know any scope.
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

// withoutParentLabel removes the label of Ensure's children from the owner. A parent with this label must not pass it
// on to objects that Ensure has not declared.
func (k *Keeper) withoutParentLabel(owner *unstructured.Unstructured) *unstructured.Unstructured {
	if k == nil || k.LikeKopf {
		return owner
	}
	labels := owner.GetLabels()
	if _, labelled := labels[k.Label()]; !labelled {
		return owner
	}
	owner = owner.DeepCopy()
	delete(labels, k.Label())
	owner.SetLabels(labels)
	return owner
}

// checkScopes reports cluster-scoped children of an object in this namespace, which cannot own them. Kinds that the
// cluster or the scheme does not know are left to the creation.
func checkScopes(namespace string, given any, c client.Client) error {
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
			continue // nothing is known about it
		}
		mapping, err := c.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
		if err == nil && mapping.Scope.Name() == meta.RESTScopeNameRoot {
			return fmt.Errorf("adopting %s %q: an object with a namespace cannot own a cluster-scoped one, and the "+
				"garbage collector deletes it: declare it by c.Ensure, or leave the owner out",
				kind.Kind, child.GetName())
		}
	}
	return nil
}
