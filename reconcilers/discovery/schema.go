package discovery

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// SchemaOf reads the schema of the objects of a kind, as in a CRD, from the OpenAPI document of its group and version,
// which every user may read. It is nil if the API server does not have one yet. Resolve returns the schema for a
// reference in it; nil for an unknown reference.
func SchemaOf(ctx context.Context, server Getter, kind schema.GroupVersionKind) (
	object map[string]any, resolve func(reference string) map[string]any, err error,
) {
	path := "/openapi/v3/apis/" + kind.GroupVersion().String()
	if kind.Group == "" {
		path = "/openapi/v3/api/" + kind.Version
	}
	var document struct {
		Components struct {
			Schemas map[string]any `json:"schemas"`
		} `json:"components"`
	}
	if err := readOptional(ctx, server, path, &document); err != nil {
		return nil, nil, fmt.Errorf("looking for the schema of %s: %w", kind, err)
	}
	// Find the schema by its kind: the names of schemas are not standardized.
	all := document.Components.Schemas
	for _, one := range all {
		if one, ok := one.(map[string]any); ok && describesKind(one, kind) {
			object = one
		}
	}
	return object, func(reference string) map[string]any {
		found, _ := all[strings.TrimPrefix(reference, "#/components/schemas/")].(map[string]any)
		return found
	}, nil
}

// describesKind reports whether the schema is that of the objects of the kind. Lists and options have schemas, too.
func describesKind(one map[string]any, kind schema.GroupVersionKind) bool {
	kinds, _ := one["x-kubernetes-group-version-kind"].([]any)
	for _, item := range kinds {
		// One schema may belong to several kinds.
		item, _ := item.(map[string]any)
		if item["group"] == kind.Group && item["version"] == kind.Version && item["kind"] == kind.Kind {
			return true
		}
	}
	return false
}
