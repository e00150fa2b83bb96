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

// PatchStatus merges records into the status, and removes those that are nil. It gives the object as it is then.
//
// # Errors
//
// That of the client: apierrors.IsNotFound if there is no such object, for it is never created here;
// apierrors.IsConflict if it has another resourceVersion, and one was given.
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

// Put writes a record by hand, or removes it if it has no lifetime. It gives the object as it is then, and has the
// errors of PatchStatus.
func (s Stored) Put(ctx context.Context, identity string, record Record) (map[string]any, error) {
	return s.PatchStatus(ctx, map[string]any{identity: record.encode()}, "")
}
