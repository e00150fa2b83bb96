package peering

import (
	"context"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Stored is a peering object in a cluster.
type Stored struct {
	// Client writes to it.
	Client client.Client
	// Kind is KopfPeering or ClusterKopfPeering, in one of the two groups that Kopf knows.
	Kind schema.GroupVersionKind
	// Namespace is empty for a ClusterKopfPeering.
	Namespace string
	// Name is its name.
	Name string
	// Subresource says that the kind has its status in a subresource.
	Subresource bool
}

// PatchStatus merges records into the status, and removes those that are nil.
//
// # Errors
//
// That of the client: apierrors.IsNotFound if there is no such object, for it is never created here.
func (s Stored) PatchStatus(ctx context.Context, status map[string]any) error {
	data, err := json.Marshal(map[string]any{"status": status})
	if err != nil {
		return fmt.Errorf("encoding peering records: %w", err)
	}
	object := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: s.Name}}
	object.SetGroupVersionKind(s.Kind)
	patch := client.RawPatch(types.MergePatchType, data)
	if s.Subresource {
		return s.Client.Status().Patch(ctx, object, patch)
	}
	return s.Client.Patch(ctx, object, patch)
}
