package draining

import (
	"cmp"
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientdiscovery "k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/discovery"
)

// cluster has the clients of one drain.
type cluster struct {
	config *rest.Config
	api    discovery.Getter
	full   dynamic.Interface  // for whole objects and patches
	bare   metadata.Interface // for the metadata of objects
}

// timeout limits each request to the API server, if the configuration has no limit.
const timeout = time.Minute

// connect returns the clients for a cluster.
func connect(config *rest.Config) (c cluster, err error) {
	// The caller's configuration is used for other clients as well.
	c.config = rest.CopyConfig(config)
	c.config.Timeout = cmp.Or(config.Timeout, timeout)
	// The number of concurrent requests is limited, so client-go's default of five requests in a second is not needed.
	c.config.QPS = cmp.Or(config.QPS, -1)
	server, err := clientdiscovery.NewDiscoveryClientForConfig(c.config)
	if err == nil {
		c.full, err = dynamic.NewForConfig(c.config)
	}
	if err == nil {
		c.bare, err = metadata.NewForConfig(c.config)
	}
	if err != nil {
		return c, fmt.Errorf("connecting to the API server: %w", err)
	}
	c.api = discovery.TimeoutGetter{Getter: discovery.API{Client: server.RESTClient()}, Timeout: c.config.Timeout}
	return c, nil
}

// resolvedKind is a resource with the ids of its handlers.
type resolvedKind struct {
	discovery.Resource

	ids []string
}

// resolveKinds finds the resources of the handled kinds, each once, although several selectors can match it. A kind
// that the cluster does not serve has no objects. A kind that could not be looked up is reported as left.
func (r *run) resolveKinds(ctx context.Context) (found []*resolvedKind) {
	inquiry, known := discovery.NewInquiry(r.api, nil), map[schema.GroupResource]*resolvedKind{}
	for _, kind := range r.Kinds {
		for _, one := range r.resolveSelector(ctx, inquiry, kind.Selector) {
			of := known[one.GroupResource()]
			if of == nil {
				of = &resolvedKind{Resource: one}
				known[one.GroupResource()], found = of, append(found, of)
			}
			of.ids = append(of.ids, kind.IDs...)
		}
	}
	for _, selector := range r.Children {
		for _, one := range r.resolveSelector(ctx, inquiry, selector) {
			r.childKinds[one.GroupVersionKind.GroupKind()] = true
		}
	}
	return found
}

// resolveSelector returns the resources of one selector, and reports everything that prevents a complete answer.
func (r *run) resolveSelector(
	ctx context.Context, inquiry *discovery.Inquiry, selector discovery.Selector,
) []discovery.Resource {
	resolved, err := inquiry.Resolve(ctx, selector, nil)
	switch {
	case discovery.IsUnserved(err), err == nil && len(resolved.Served) == 0 && !resolved.Incomplete:
		r.note("The cluster has no %s, and so no objects of it", selector)
	case err != nil:
		r.leave(selector.String(), "objects", err)
	case resolved.Incomplete:
		r.leave(selector.String(), "objects", fmt.Errorf("the API server could not list all kinds: %s",
			resolved.Reason))
	}
	return resolved.Served
}

// selectNamespaces returns the namespaces of the drain; "" alone is the whole cluster.
func (r *run) selectNamespaces(ctx context.Context) ([]string, error) {
	if len(r.Namespaces) == 0 {
		return []string{metav1.NamespaceAll}, nil
	}
	// Plain names need no permission to list namespaces.
	if names, plain := r.Namespaces.PlainNames(); plain {
		return names, nil
	}
	var options metav1.ListOptions
	if by := r.Namespaces.LabelSelector(); by != nil {
		options.LabelSelector = by.String()
	}
	list, err := r.bare.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}).List(ctx, options)
	if err != nil {
		return nil, fmt.Errorf("listing the namespaces for the patterns %v: %w", r.Namespaces.Texts(), err)
	}
	var names []string
	for _, one := range list.Items {
		if r.Namespaces.MatchesName(one.Name) {
			names = append(names, one.Name)
		}
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("no namespace matches the patterns %v", r.Namespaces.Texts())
	}
	return names, nil
}
