package discovery

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// SchemaOf reads the schema of the objects of a kind, as in a CRD, from the OpenAPI document of its group and version,
// which everybody may read; nil if the API server has none, or not yet. Resolve gives what a reference in it stands
// for; nil for one that leads nowhere.
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
	all := document.Components.Schemas
	for _, one := range all {
		if one, ok := one.(map[string]any); ok && describes(one, kind) {
			object = one
		}
	}
	return object, func(reference string) map[string]any {
		found, _ := all[strings.TrimPrefix(reference, "#/components/schemas/")].(map[string]any)
		return found
	}, nil
}

// describes tells whether the schema is that of the objects of the kind.
func describes(one map[string]any, kind schema.GroupVersionKind) bool {
	kinds, _ := one["x-kubernetes-group-version-kind"].([]any)
	for _, item := range kinds {
		item, _ := item.(map[string]any)
		if item["group"] == kind.Group && item["version"] == kind.Version && item["kind"] == kind.Kind {
			return true
		}
	}
	return false
}
