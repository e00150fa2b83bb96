package freezing

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientdiscovery "k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/discovery"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/logging"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/namespaces"
)

// cluster accesses the peering objects of one scope.
type cluster struct {
	client client.Client // for metadata and unstructured objects only
	// kinds are the peering kinds of the scope that the cluster serves, one per API group.
	kinds []discovery.Resource
}

// requestTimeout limits each request to the API server, if the configuration has no limit.
const requestTimeout = time.Minute

// connectScope finds the peering kinds of the scope and returns a client for them.
func connectScope(ctx context.Context, config *rest.Config, clusterwide bool) (*cluster, error) {
	// The caller's configuration is used for other clients as well.
	config = rest.CopyConfig(config)
	config.Timeout = cmp.Or(config.Timeout, requestTimeout)
	// The command runs once, so discovery is not cached and sees the current CRDs.
	server, err := clientdiscovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connecting to the API server: %w", err)
	}
	// The timeout applies to each request.
	api := discovery.TimeoutGetter{Getter: discovery.API{Client: server.RESTClient()}, Timeout: config.Timeout}
	kinds, err := findKinds(ctx, api, clusterwide)
	if err != nil {
		return nil, err
	}
	// All objects are unstructured or only metadata, so the scheme needs no Go types of kinds.
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, corev1.SchemeGroupVersion)
	all, err := client.New(config, client.Options{Scheme: scheme, Mapper: newMapper(kinds)})
	if err != nil {
		return nil, fmt.Errorf("connecting to the API server: %w", err)
	}
	return &cluster{all, kinds}, nil
}

// peeringGroups and version are those of Kopf's peering. Old clusters have the second group. A cluster can serve both.
var peeringGroups = []string{"kopf.dev", "zalando.org"}

const peeringVersion = "v1"

// findKinds returns the served kinds of one scope. It returns an error if there are none.
func findKinds(ctx context.Context, api discovery.Getter, clusterwide bool) (found []discovery.Resource, err error) {
	plural := "kopfpeerings"
	if clusterwide {
		plural = "clusterkopfpeerings"
	}
	// Only these groups are discovered, so a broken aggregated API does not matter.
	all, err := discovery.ListResources(ctx, api, peeringGroups...)
	if err != nil {
		return nil, fmt.Errorf("looking for %s: %w", plural, err)
	}
	for _, one := range all {
		// The scope distinguishes kinds of the same name, and other versions have another format.
		if one.Version == peeringVersion && one.Plural == plural && one.Namespaced != clusterwide {
			found = append(found, one)
		}
	}
	if len(found) > 0 {
		return found, nil
	}
	return nil, fmt.Errorf(
		"this cluster has no %s, neither in %s: so no operator looks there. Their CRDs are in config/crd/peerings.yaml",
		plural, strings.Join(peeringGroups, " nor in "),
	)
}

// newMapper returns a mapper for these kinds and namespaces. It needs no further discovery requests.
func newMapper(kinds []discovery.Resource) meta.RESTMapper {
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Namespace"), meta.RESTScopeRoot)
	for _, one := range kinds {
		scope := meta.RESTScopeRoot
		if one.Namespaced {
			scope = meta.RESTScopeNamespace
		}
		plural := one.GroupVersionResource()
		// The plural is known from discovery; the default mapper would guess it.
		mapper.AddSpecific(one.GroupVersionKind, plural, plural, scope)
	}
	return mapper
}

// namespaceTarget is a namespace; empty for the whole cluster.
type namespaceTarget struct {
	namespace string
	isNamed   bool // given by its name, not by a pattern
}

// selectNamespaces returns the namespaces that the patterns select. Without patterns, it returns the whole cluster.
func (c *cluster) selectNamespaces(ctx context.Context, meant namespaces.Patterns) (all []namespaceTarget, err error) {
	// The cluster-scoped object counts as given by name, so its absence is an error.
	if len(meant) == 0 {
		return []namespaceTarget{{isNamed: true}}, nil
	}
	// Names and patterns are separated, since only patterns need a list.
	var patterns namespaces.Patterns
	for _, one := range meant {
		// A plain name needs no list request, and so no permission to list namespaces.
		if names, plain := (namespaces.Patterns{one}).PlainNames(); plain {
			all = append(all, namespaceTarget{names[0], true})
			continue
		}
		patterns = append(patterns, one)
	}
	if len(patterns) == 0 {
		return all, nil
	}
	// Only names and labels are needed.
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "NamespaceList"})
	var options []client.ListOption
	if by := meant.LabelSelector(); by != nil {
		options = append(options, client.MatchingLabelsSelector{Selector: by})
	}
	switch err := c.client.List(ctx, list, options...); {
	// The plain names can still be served without this permission.
	case apierrors.IsForbidden(err) && len(all) > 0:
		logging.Warn(logf.FromContext(ctx), "Patterns of namespaces are left out: namespaces may not be listed",
			"patterns", fmt.Sprint(patterns), "error", err.Error())
	case err != nil:
		return nil, fmt.Errorf("listing the namespaces for the patterns %v: %w", patterns, err)
	}
	for _, one := range list.Items {
		// A name can also match a pattern. It is processed once, as a name.
		isKnown := func(known namespaceTarget) bool { return known.namespace == one.Name }
		if patterns.MatchesName(one.Name) && !slices.ContainsFunc(all, isKnown) {
			all = append(all, namespaceTarget{namespace: one.Name})
		}
	}
	// A wrong pattern would otherwise look like success.
	if len(all) == 0 {
		return nil, fmt.Errorf("no namespace matches the patterns %v", patterns)
	}
	return all, nil
}

// missingObjectError returns the error for a peering object that does not exist. Operators then do not look there
// either, so a record would have no effect.
func (c *cluster) missingObjectError(name, namespace string) error {
	// All kinds of one scope have the same name, only in different groups.
	kind := c.kinds[0]
	text := fmt.Sprintf("there is no %s %q", kind.Kind, name)
	if namespace != "" {
		text += fmt.Sprintf(" in the namespace %q", namespace)
	}
	return errors.New(text + ", so no operator looks there: name one with -P (--peering), or create it")
}
