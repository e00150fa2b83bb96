package informers

import (
	"context"
	"fmt"
	"net/http"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/discovery"
)

// ObjectReader reads single objects of a resource from the API server.
type ObjectReader struct {
	listing  func() (*listing, error) // for all namespaces; created at the first use
	resource discovery.Resource
}

// NewLookup creates the lookup of a resource. It sends no requests yet.
func NewLookup(config *rest.Config, way *http.Client, resource discovery.Resource) *ObjectReader {
	return &ObjectReader{resource: resource, listing: sync.OnceValues(func() (*listing, error) {
		return newListing(config, way, resource, WatchInterest{MetadataOnly: true})
	})}
}

// CurrentUID returns the uid of the object with this name, or an empty uid if the object does not exist. It lists the
// metadata with a field selector instead of getting the object, because an informer needs the permission to list
// anyway, but not the one to get.
func (l *ObjectReader) CurrentUID(ctx context.Context, of types.NamespacedName) (types.UID, error) {
	// The client is created at the first lookup, because a controller may never need one.
	all, err := l.listing()
	if err != nil {
		return "", err
	}
	// Copy the listing: several goroutines look up objects of different namespaces.
	asked := *all
	asked.interest.Namespace = of.Namespace
	found, err := asked.listObjects(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, of.Name).String(),
	})
	if err != nil {
		return "", fmt.Errorf("looking for %s %s: %w", l.resource.Kind, of, err)
	}
	// A nil page means that the server answered with something else, such as a single object.
	page, _ := found.(*list)
	if page == nil {
		return "", fmt.Errorf("looking for %s %s: the response is not a list", l.resource.Kind, of)
	}
	// Compare the names: a server that ignored the field selector would return other objects, too.
	for _, object := range page.Items {
		if object.ObjectKey() == of {
			return object.GetUID(), nil
		}
	}
	return "", nil
}
