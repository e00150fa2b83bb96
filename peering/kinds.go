package peering

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

// versions are the API versions of Kopf's peering kinds. A cluster can serve both.
var versions = []schema.GroupVersion{{Group: "kopf.dev", Version: "v1"}, {Group: "zalando.org", Version: "v1"}}

const (
	clusterKind    = "ClusterKopfPeering"
	namespacedKind = "KopfPeering"
)

// peeringKind is a peering kind that the API server serves.
type peeringKind struct {
	schema.GroupVersionKind
	hasStatus bool // it has /status
}

// newStaticMapper returns a mapper that has all kinds, including those that the API server does not serve yet. A static
// mapper avoids the discovery of all groups.
func newStaticMapper() meta.RESTMapper {
	all := meta.NewDefaultRESTMapper(nil)
	for _, of := range versions {
		for name, scope := range map[string]meta.RESTScope{
			clusterKind: meta.RESTScopeRoot, namespacedKind: meta.RESTScopeNamespace,
		} {
			all.Add(of.WithKind(name), scope)
		}
	}
	// Events are posted with the same client.
	all.Add(corev1.SchemeGroupVersion.WithKind("Event"), meta.RESTScopeNamespace)
	return all
}

// findServedKinds requests the peering kinds with this name in all groups. It uses one small request per group instead
// of full discovery.
func findServedKinds(ctx context.Context, api rest.Interface, name string) (found []peeringKind, err error) {
	for _, of := range versions {
		var list metav1.APIResourceList
		err := api.Get().AbsPath("/apis", of.Group, of.Version).Do(ctx).Into(&list)
		switch {
		case apierrors.IsNotFound(err):
			continue
		case err != nil:
			return nil, fmt.Errorf("looking for peering kinds of %s: %w", of, err)
		}
		at := slices.IndexFunc(list.APIResources, func(r metav1.APIResource) bool {
			// Subresources have the kind of their resource, but a slash in the name.
			return r.Kind == name && !slices.Contains([]byte(r.Name), '/')
		})
		if at < 0 {
			continue
		}
		status := list.APIResources[at].Name + "/status"
		found = append(found, peeringKind{of.WithKind(name), slices.ContainsFunc(
			list.APIResources, func(r metav1.APIResource) bool { return r.Name == status },
		)})
	}
	return found, nil
}
