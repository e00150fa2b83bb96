package peering

import (
	"context"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Stored is a peering object in a cluster.
type Stored struct {
	// Client writes the object.
	Client client.Client
	// Kind is KopfPeering or ClusterKopfPeering, in one of the two groups that Kopf knows.
	Kind schema.GroupVersionKind
	// Namespace is empty for a ClusterKopfPeering.
	Namespace string
	// Name is the name of the object.
	Name string
	// Subresource is true if the status of the kind is a subresource.
	Subresource bool
}

// PatchStatus merges records into the status, and removes those that are nil. It returns the object after that.
//
// # Errors
//
// That of the client: apierrors.IsNotFound without such an object, because it is not created here;
// apierrors.IsConflict if the object has another resourceVersion than the given one.
func (s Stored) PatchStatus(
	ctx context.Context, status map[string]any, resourceVersion string,
) (map[string]any, error) {
	content := map[string]any{"status": status}
	if resourceVersion != "" {
		content["metadata"] = map[string]any{"resourceVersion": resourceVersion}
	}
	data, err := json.Marshal(content)
	if err != nil {
		return nil, fmt.Errorf("encoding peering records: %w", err)
	}
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(s.Kind)
	object.SetNamespace(s.Namespace)
	object.SetName(s.Name)
	patch := client.RawPatch(types.MergePatchType, data)
	if s.Subresource {
		err = s.Client.Status().Patch(ctx, object, patch)
	} else {
		err = s.Client.Patch(ctx, object, patch)
	}
	return object.Object, err
}

// Put writes a record by hand, or removes it if it does not have a lifetime. It returns the object after that, and has
// the errors of PatchStatus.
func (s Stored) Put(ctx context.Context, identity string, record Record) (map[string]any, error) {
	return s.PatchStatus(ctx, map[string]any{identity: record.encode()}, "")
}
