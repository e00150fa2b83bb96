package clusterops

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientdiscovery "k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/pager"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-runtime/kopf-runtime/internal/discovery"
	"github.com/kopf-runtime/kopf-runtime/internal/namespaces"
)

// requestTimeout limits each request to the API server, if the configuration has no limit.
const requestTimeout = time.Minute

// Cluster is the connection of one command.
type Cluster struct {
	discovery.Getter

	// Config is a copy of the configuration, with the limits of commands, and Client is its client.
	Config *rest.Config
	Client *http.Client
}

// Connect returns the connection for a configuration, which stays as it is. It sends no requests.
func Connect(config *rest.Config) (*Cluster, error) {
	way, err := rest.HTTPClientFor(withLimits(config))
	if err != nil {
		return nil, fmt.Errorf("connecting to the API server: %w", err)
	}
	return ConnectBy(config, way)
}

// withLimits returns a copy of the configuration with the limits of commands.
func withLimits(config *rest.Config) *rest.Config {
	limited := rest.CopyConfig(config)
	limited.Timeout = cmp.Or(config.Timeout, requestTimeout)
	// Commands limit their concurrent requests, so client-go's default of five requests in a second is not needed.
	limited.QPS = cmp.Or(config.QPS, -1)
	limited.ContentType = runtime.ContentTypeJSON
	return limited
}

// ConnectBy is like [Connect], with an existing client.
func ConnectBy(config *rest.Config, way *http.Client) (*Cluster, error) {
	c := &Cluster{Config: withLimits(config), Client: way}
	server, err := clientdiscovery.NewDiscoveryClientForConfigAndClient(c.Config, way)
	if err != nil {
		return nil, fmt.Errorf("connecting to the API server: %w", err)
	}
	c.Getter = discovery.TimeoutGetter{Getter: discovery.API{Client: server.RESTClient()}, Timeout: c.Config.Timeout}
	return c, nil
}

// Objects are the objects of one resource.
type Objects struct {
	Client       client.Client
	Resource     discovery.Resource
	metadataOnly bool
}

// ObjectsOf returns the objects of a resource. With metadataOnly, their bodies have nothing else.
func (c *Cluster) ObjectsOf(r discovery.Resource, metadataOnly bool) (*Objects, error) {
	scope, plural := meta.RESTScopeRoot, r.GroupVersionResource()
	if r.Namespaced {
		scope = meta.RESTScopeNamespace
	}
	// The plural is known from discovery, so the mapper sends no requests.
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.AddSpecific(r.GroupVersionKind, plural, plural, scope)
	api, err := client.New(c.Config, client.Options{HTTPClient: c.Client, Scheme: runtime.NewScheme(), Mapper: mapper})
	if err != nil {
		return nil, fmt.Errorf("connecting to the API server: %w", err)
	}
	return &Objects{api, r, metadataOnly}, nil
}

// List calls visit for each object, in all namespaces if it is empty. The objects are read in pages, and none of them
// is kept. An error of visit ends the list.
func (o *Objects) List(
	ctx context.Context, namespace, labels string, visit func(body map[string]any) error,
) error {
	readPage := func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		var page client.ObjectList = &unstructured.UnstructuredList{}
		if o.metadataOnly {
			page = &metav1.PartialObjectMetadataList{}
		}
		page.GetObjectKind().SetGroupVersionKind(o.Resource.GroupVersion().WithKind(o.Resource.Kind + "List"))
		return page, o.Client.List(ctx, page, &client.ListOptions{
			Namespace: namespace, Limit: options.Limit, Continue: options.Continue, Raw: &options,
		})
	}
	pages := pager.New(readPage)
	pages.PageBufferSize = 0 // one page is read in advance
	return pages.EachListItem(ctx, metav1.ListOptions{LabelSelector: labels}, func(one runtime.Object) error {
		body, err := o.bodyOf(one)
		if err != nil {
			return err
		}
		return visit(body)
	})
}

// Get reads one object.
func (o *Objects) Get(ctx context.Context, key client.ObjectKey) (map[string]any, error) {
	var one client.Object = &unstructured.Unstructured{}
	if o.metadataOnly {
		one = &metav1.PartialObjectMetadata{}
	}
	one.GetObjectKind().SetGroupVersionKind(o.Resource.GroupVersionKind)
	if err := o.Client.Get(ctx, key, one); err != nil {
		return nil, err
	}
	return o.bodyOf(one)
}

// Patch sends a merge patch that is valid for the object with this uid only, and reads the answer into the object.
// The status is that of the kind's subresource.
func (o *Objects) Patch(
	ctx context.Context, one *unstructured.Unstructured, patch map[string]any, manager string, status bool,
) error {
	if err := unstructured.SetNestedField(patch, string(one.GetUID()), "metadata", "uid"); err != nil {
		return fmt.Errorf("making a patch: %w", err)
	}
	data, err := json.Marshal(patch)
	if err != nil {
		return fmt.Errorf("encoding a patch: %w", err)
	}
	raw := client.RawPatch(types.MergePatchType, data)
	if status {
		return o.Client.Status().Patch(ctx, one, raw, client.FieldOwner(manager))
	}
	return o.Client.Patch(ctx, one, raw, client.FieldOwner(manager))
}

// bodyOf returns an object as JSON, with its kind, which items of lists can lack. The fields of managers are large and
// not needed, and operators do not keep them either.
func (o *Objects) bodyOf(one runtime.Object) (map[string]any, error) {
	body, err := runtime.DefaultUnstructuredConverter.ToUnstructured(one)
	if err != nil {
		return nil, fmt.Errorf("decoding an object of %s: %w", o.Resource.GroupResource(), err)
	}
	(&unstructured.Unstructured{Object: body}).SetGroupVersionKind(o.Resource.GroupVersionKind)
	unstructured.RemoveNestedField(body, "metadata", "managedFields")
	return body, nil
}

// ListObjects implements reconcilers.PreviewSource.
func (c *Cluster) ListObjects(
	ctx context.Context, r discovery.Resource, namespace, labels string, visit func(body map[string]any) error,
) error {
	all, err := c.ObjectsOf(r, false)
	if err != nil {
		return err
	}
	return all.List(ctx, namespace, labels, visit)
}

// MatchingNamespaces returns the namespaces that exist and match any of the patterns.
func (c *Cluster) MatchingNamespaces(ctx context.Context, patterns namespaces.Patterns) (names []string, err error) {
	labels := ""
	if by := patterns.LabelSelector(); by != nil {
		labels = by.String()
	}
	all, err := c.ObjectsOf(discovery.Resource{
		GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}, Plural: "namespaces",
	}, true)
	if err == nil {
		err = all.List(ctx, "", labels, func(body map[string]any) error {
			if name := (&unstructured.Unstructured{Object: body}).GetName(); patterns.MatchesName(name) {
				names = append(names, name)
			}
			return nil
		})
	}
	if err != nil {
		return nil, fmt.Errorf("listing the namespaces for the patterns %v: %w", patterns, err)
	}
	return names, nil
}
