package planning

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clientdiscovery "k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/kopf-runtime/kopf-runtime/reconcilers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/discovery"
)

// pageSize is the number of objects that are read at once.
const pageSize = 500

// Cluster reads the objects of a cluster. It only sends requests of the verbs get and list.
type Cluster struct {
	discovery.Getter
	objects dynamic.Interface
}

var _ reconcilers.PreviewSource = (*Cluster)(nil)

// NewCluster returns the source for a connection.
func NewCluster(config *rest.Config) (*Cluster, error) {
	documents, err := clientdiscovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making the client for discovery: %w", err)
	}
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making the client for objects: %w", err)
	}
	return &Cluster{discovery.TimeoutGetter{Getter: discovery.API{Client: documents.RESTClient()}}, objects}, nil
}

// ListObjects implements [reconcilers.PreviewSource]. The objects are read in pages, and none of them is kept.
func (c *Cluster) ListObjects(
	ctx context.Context, r discovery.Resource, namespace, labels string, visit func(body map[string]any) error,
) error {
	options := metav1.ListOptions{LabelSelector: labels, Limit: pageSize}
	for {
		page, err := c.objects.Resource(r.GroupVersionResource()).Namespace(namespace).List(ctx, options)
		if err != nil {
			return err
		}
		for _, object := range page.Items {
			// The operator does not keep them either.
			unstructured.RemoveNestedField(object.Object, "metadata", "managedFields")
			if err := visit(object.Object); err != nil {
				return err
			}
		}
		if options.Continue = page.GetContinue(); options.Continue == "" {
			return nil
		}
	}
}
