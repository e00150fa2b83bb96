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

// StoredObject is a peering object in a cluster.
type StoredObject struct {
	// Client writes the object.
	Client client.Client
	// Kind is KopfPeering or ClusterKopfPeering, in one of Kopf's two API groups.
	Kind schema.GroupVersionKind
	// Namespace is empty for a ClusterKopfPeering.
	Namespace string
	// Name is the name of the object.
	Name string
	// HasStatus is true if the kind has a /status subresource. The API server ignores the status in patches of the
	// main resource then.
	HasStatus bool
}

// PatchStatus merges records into the status, and removes those that are nil. It returns the resulting object.
//
// # Errors
//
// It returns the client's errors: apierrors.IsNotFound if there is no such object, because the operator never creates
// it; apierrors.IsConflict if the object does not have the given resourceVersion.
func (s StoredObject) PatchStatus(
	ctx context.Context, status map[string]any, resourceVersion string,
) (map[string]any, error) {
	content := map[string]any{"status": status}
	if resourceVersion != "" {
		// The API server rejects a merge-patch whose resourceVersion differs from the stored one.
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
	if s.HasStatus {
		err = s.Client.Status().Patch(ctx, object, patch)
	} else {
		err = s.Client.Patch(ctx, object, patch)
	}
	return object.Object, err
}

// WriteRecord writes a record on behalf of a user, or removes it if the record does not have a lifetime. It returns the
// resulting object, and the errors of PatchStatus.
func (s StoredObject) WriteRecord(ctx context.Context, identity string, record PeerRecord) (map[string]any, error) {
	return s.PatchStatus(ctx, map[string]any{identity: record.encodeFields()}, "")
}
