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

// Lookup asks the API server for single objects of a resource.
type Lookup struct {
	listing  func() (*listing, error) // of all namespaces; made once, when it is first needed
	resource discovery.Resource
}

// NewLookup makes one.
func NewLookup(config *rest.Config, way *http.Client, resource discovery.Resource) *Lookup {
	return &Lookup{resource: resource, listing: sync.OnceValues(func() (*listing, error) {
		return newListing(config, way, resource, Interest{Metadata: true})
	})}
}

// UID is that of the object of this name, and empty if there is none. It asks for the metadata alone, by a list of one,
// which needs no other right than an informer does.
func (l *Lookup) UID(ctx context.Context, of types.NamespacedName) (types.UID, error) {
	all, err := l.listing()
	if err != nil {
		return "", err
	}
	asked := *all
	asked.interest.Namespace = of.Namespace
	found, err := asked.list(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, of.Name).String(),
	})
	if err != nil {
		return "", fmt.Errorf("looking for %s %s: %w", l.resource.Kind, of, err)
	}
	page, _ := found.(*list)
	if page == nil {
		return "", fmt.Errorf("looking for %s %s: the response is not a list", l.resource.Kind, of)
	}
	for _, object := range page.Items {
		if object.Key() == of {
			return object.GetUID(), nil
		}
	}
	return "", nil
}
