package discovery

import (
	"cmp"
	"context"
	"fmt"
	"slices"
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

// listKeys is one node of a tree that has the list keys of a schema: those of one value, and of the values below it. A
// nil node has no keys.
type listKeys struct {
	keys       []string             // of the value itself, if it is a list
	fields     map[string]*listKeys // by field name; the fields of list items count as fields of the list
	additional *listKeys            // for names that are not in fields, from additionalProperties
}

// ListKeysOf reads the x-kubernetes-list-map-keys of a kind from the schema that the API server publishes: the fields
// that identify the items of lists. The returned function returns the keys of the list at a path; nil for a list
// without keys. A path that leads through another list does not contain an index.
func ListKeysOf(
	ctx context.Context, server Getter, kind schema.GroupVersionKind,
) (keys func(list []string) []string, err error) {
	object, resolve, err := SchemaOf(ctx, server, kind)
	if err != nil {
		return nil, err
	}
	reader := &schemaReader{resolve: resolve}
	return reader.keysIn(object).keysAt, nil
}

// keysAt returns the keys of the list at the path; nil if there are none.
func (l *listKeys) keysAt(list []string) []string {
	switch {
	case l == nil:
		return nil
	case len(list) == 0:
		return l.keys
	}
	// Fields win over additional properties.
	return cmp.Or(l.fields[list[0]], l.additional).keysAt(list[1:])
}

// schemaReader reads one schema. It does not follow a reference again while it reads the referenced schema: recursive
// schemas, such as that of CRDs, would never end.
type schemaReader struct {
	resolve        func(reference string) map[string]any
	openReferences []string // references that are being read, outermost first
}

// keysIn returns the keys in a schema. It returns nil if there are none, so that the large rest of the schema does not
// stay in memory.
func (r *schemaReader) keysIn(one map[string]any) *listKeys {
	found := &listKeys{fields: map[string]*listKeys{}}
	r.addKeys(found, one)
	// This is the common case: most parts of a schema do not have list keys.
	if found.keys == nil && len(found.fields) == 0 && found.additional == nil {
		return nil
	}
	return found
}

// addKeys adds the keys of one schema. Paths skip the indices of lists, so the fields of the items become the fields of
// the list.
func (r *schemaReader) addKeys(to *listKeys, one map[string]any) {
	keys, _ := one["x-kubernetes-list-map-keys"].([]any)
	for _, key := range keys {
		if key, ok := key.(string); ok {
			to.keys = append(to.keys, key)
		}
	}
	properties, _ := one["properties"].(map[string]any)
	for name, property := range properties {
		property, _ := property.(map[string]any)
		if below := r.keysIn(property); below != nil {
			to.fields[name] = below
		}
	}
	if others, ok := one["additionalProperties"].(map[string]any); ok {
		to.additional = r.keysIn(others)
	}
	if items, ok := one["items"].(map[string]any); ok {
		if below := r.keysIn(items); below != nil {
			to.fields, to.additional = below.fields, below.additional
		}
	}
	// OpenAPI documents refer to other schemas directly or by allOf.
	parts, _ := one["allOf"].([]any)
	for _, part := range parts {
		part, _ := part.(map[string]any)
		r.followReference(to, part)
	}
	r.followReference(to, one)
}

// followReference adds the keys of the schema that the $ref of the given schema names. It ignores references that are
// being read already.
func (r *schemaReader) followReference(to *listKeys, one map[string]any) {
	reference, ok := one["$ref"].(string)
	if !ok || slices.Contains(r.openReferences, reference) {
		return
	}
	r.openReferences = append(r.openReferences, reference)
	r.addKeys(to, r.resolve(reference))
	// Remove the reference, because a sibling may refer to the same schema.
	r.openReferences = r.openReferences[:len(r.openReferences)-1]
}
