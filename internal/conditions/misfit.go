package conditions

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// preserveUnknownFields marks a schema that keeps unknown fields.
const preserveUnknownFields = "x-kubernetes-preserve-unknown-fields"

// conditionFields are the fields of a condition.
var conditionFields = []string{"type", "status", "reason", "message", "lastTransitionTime", "observedGeneration"}

// SchemaMisfit returns why objects of the schema cannot have the conditions, or an empty text if they can. The result
// observed reports whether the schema has status.observedGeneration. The schema is that of an object, as in a CRD or in
// the OpenAPI v3 document; resolve returns the schema for a reference.
func SchemaMisfit(schema map[string]any, resolve func(reference string) map[string]any) (why string, observed bool) {
	status, known := propertySchema(schema, "status", resolve)
	switch {
	case !known:
		return "the schema has no status", false
	case status == nil:
		// A status of any form takes all fields.
		return "", true
	}
	list, known := propertySchema(status, "conditions", resolve)
	_, observed = propertySchema(status, "observedGeneration", resolve)
	if !known {
		return "the schema has no status.conditions", observed
	}
	return listMisfit(list, resolve), observed
}

// listMisfit returns why the list cannot hold conditions. It must be a list whose items have all fields of a
// condition, and require no others.
func listMisfit(list map[string]any, resolve func(string) map[string]any) string {
	if kind, ok := list["type"].(string); ok && kind != "array" {
		return fmt.Sprintf("status.conditions is of type %s in the schema, not a list", kind)
	}
	item, _ := list["items"].(map[string]any)
	// An unknown schema of the list or of its items takes everything.
	if list == nil || item == nil {
		return ""
	}
	item = followReferences(item, resolve)
	// The API server would prune fields that the schema lacks.
	var missing []string
	for _, field := range conditionFields {
		if _, known := propertySchema(item, field, resolve); !known {
			missing = append(missing, field)
		}
	}
	if len(missing) > 0 {
		return "items of status.conditions lack fields in the schema: " + strings.Join(missing, ", ")
	}
	// The engine does not know values for other required fields.
	required, _ := item["required"].([]any)
	required = slices.DeleteFunc(slices.Clone(required), func(name any) bool {
		text, _ := name.(string)
		return slices.Contains(conditionFields, text)
	})
	if len(required) > 0 {
		return fmt.Sprintf("items of status.conditions need further fields by the schema: %v", required)
	}
	return ""
}

// KeepsField reports whether objects of the schema can have the field at the path. The API server drops other fields. A
// nil schema keeps all of them.
func KeepsField(schema map[string]any, path []string, resolve func(reference string) map[string]any) bool {
	for _, name := range path {
		below, known := propertySchema(schema, name, resolve)
		if !known {
			return false
		}
		schema = below
	}
	return true
}

// propertySchema returns the schema of one field, and whether the field is allowed. A nil schema allows any value.
func propertySchema(of map[string]any, name string, resolve func(string) map[string]any) (map[string]any, bool) {
	properties, _ := of["properties"].(map[string]any)
	if found, ok := properties[name].(map[string]any); ok {
		return followReferences(found, resolve), true
	}
	open, _ := of["additionalProperties"].(map[string]any)
	return nil, of == nil || of[preserveUnknownFields] == true || open != nil || of["additionalProperties"] == true
}

// followReferences merges the schemas that a schema refers to, directly or by allOf. Its own keys win.
func followReferences(schema map[string]any, resolve func(string) map[string]any) map[string]any {
	// The schema is shared: merge into a copy.
	schema = maps.Clone(schema)
	parts, _ := schema["allOf"].([]any)
	for _, part := range append(slices.Clone(parts), schema) {
		part, _ := part.(map[string]any)
		if reference, ok := part["$ref"].(string); ok {
			for key, value := range resolve(reference) {
				if _, known := schema[key]; !known {
					schema[key] = value
				}
			}
		}
	}
	return schema
}
