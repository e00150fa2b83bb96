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
	client   func() (rest.Interface, error) // made once, when it is first needed
	resource discovery.Resource
}

// NewLookup makes one.
func NewLookup(config *rest.Config, way *http.Client, resource discovery.Resource) *Lookup {
	return &Lookup{resource: resource, client: sync.OnceValues(func() (rest.Interface, error) {
		return clientOf(config, way, resource, Interest{Metadata: true})
	})}
}

// UID is that of the object of this name, and empty if there is none. It asks for the metadata alone, by a list of one,
// which needs no other right than an informer does.
func (l *Lookup) UID(ctx context.Context, of types.NamespacedName) (types.UID, error) {
	client, err := l.client()
	if err != nil {
		return "", fmt.Errorf("making the client of %s: %w", l.resource.GroupVersionKind, err)
	}
	interest := Interest{Namespace: of.Namespace, Metadata: true}
	asked := &listing{client: client, plural: l.resource.Plural, interest: interest}
	found, err := asked.list(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, of.Name).String(),
	})
	if err != nil {
		return "", fmt.Errorf("looking for %s %s: %w", l.resource.Kind, of, err)
	}
	page, _ := found.(*list)
	if page == nil {
		return "", fmt.Errorf("looking for %s %s: the answer is no list", l.resource.Kind, of)
	}
	for _, object := range page.Items {
		if object.Key() == of {
			return object.GetUID(), nil
		}
	}
	return "", nil
}
