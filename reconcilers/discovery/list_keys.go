package discovery

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// listKeys are the keys of the lists in and below one value of a schema. Nil has no keys.
type listKeys struct {
	keys   []string             // of this list
	fields map[string]*listKeys // by the name of the field; items of lists count as fields of the list
	others *listKeys            // of keys that are not among the fields
}

// ListKeysOf reads the fields that identify the items of lists in the objects of a kind: the x-kubernetes-list-map-keys
// of the schema that the API server publishes. The returned function returns the keys of one list; nil for a list
// without keys. Paths lead through other lists without an index.
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
	for _, key := range list {
		if l == nil {
			return nil
		}
		// Fields win over additional properties.
		if below := l.fields[key]; below != nil {
			l = below
		} else {
			l = l.others
		}
	}
	if l == nil {
		return nil
	}
	return l.keys
}

// schemaReader reads one schema. It does not follow a reference within itself, because recursive schemas, such as that
// of CRDs, would never end.
type schemaReader struct {
	resolve   func(reference string) map[string]any
	following []string // references that are being read, from the root on
}

// keysIn returns nil for a schema without keys, so that nothing else of a large schema stays in memory.
func (r *schemaReader) keysIn(one map[string]any) *listKeys {
	found := &listKeys{fields: map[string]*listKeys{}}
	r.addKeys(found, one)
	// The schema of a kind is large, and most of it has no list keys.
	if found.keys == nil && len(found.fields) == 0 && found.others == nil {
		return nil
	}
	return found
}

// addKeys adds the keys of one schema. Paths lead through lists, so the fields of the items become the fields of the
// list.
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
		to.others = r.keysIn(others)
	}
	if items, ok := one["items"].(map[string]any); ok {
		if below := r.keysIn(items); below != nil {
			to.fields, to.others = below.fields, below.others
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

// followReference adds the keys of the schema that a schema refers to.
func (r *schemaReader) followReference(to *listKeys, one map[string]any) {
	reference, ok := one["$ref"].(string)
	if !ok || slices.Contains(r.following, reference) {
		return
	}
	r.following = append(r.following, reference)
	r.addKeys(to, r.resolve(reference))
	// Another branch may refer to the same schema.
	r.following = r.following[:len(r.following)-1]
}
