package peering

import (
	"context"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Put writes a record by hand, or removes it if it has no lifetime. It gives the status as it is then.
//
// # Errors
//
// That of the client: apierrors.IsNotFound if there is no such object, for it is never created here.
func (s Stored) Put(ctx context.Context, identity string, record Record) (map[string]any, error) {
	data, err := json.Marshal(map[string]any{"status": map[string]any{identity: record.encode()}})
	if err != nil {
		return nil, fmt.Errorf("encoding a peering record: %w", err)
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
	status, _ := object.Object["status"].(map[string]any)
	return status, err
}
