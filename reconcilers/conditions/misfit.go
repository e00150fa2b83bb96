package conditions

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

const preserves = "x-kubernetes-preserve-unknown-fields"

// fields are those of a condition.
var fields = []string{"type", "status", "reason", "message", "lastTransitionTime", "observedGeneration"}

// Misfit tells why objects of the schema cannot have the conditions, and empty if they can; and whether there is
// status.observedGeneration. The schema is that of an object, as in a CRD or in the OpenAPI document of version 3,
// where resolve finds what a reference means.
func Misfit(schema map[string]any, resolve func(reference string) map[string]any) (why string, observed bool) {
	status, known := property(schema, "status", resolve)
	switch {
	case !known:
		return "the schema has no status", false
	case status == nil:
		return "", true
	}
	list, known := property(status, "conditions", resolve)
	_, observed = property(status, "observedGeneration", resolve)
	if !known {
		return "the schema has no status.conditions", observed
	}
	return misfitOfList(list, resolve), observed
}

func misfitOfList(list map[string]any, resolve func(string) map[string]any) string {
	if kind, ok := list["type"].(string); ok && kind != "array" {
		return fmt.Sprintf("status.conditions is of type %s in the schema, not a list", kind)
	}
	item, _ := list["items"].(map[string]any)
	if list == nil || item == nil {
		return ""
	}
	item = resolved(item, resolve)
	var missing []string
	for _, field := range fields {
		if _, known := property(item, field, resolve); !known {
			missing = append(missing, field)
		}
	}
	if len(missing) > 0 {
		return "items of status.conditions lack fields in the schema: " + strings.Join(missing, ", ")
	}
	required, _ := item["required"].([]any)
	required = slices.DeleteFunc(slices.Clone(required), func(name any) bool {
		text, _ := name.(string)
		return slices.Contains(fields, text)
	})
	if len(required) > 0 {
		return fmt.Sprintf("items of status.conditions need further fields by the schema: %v", required)
	}
	return ""
}

// property gives the schema of one field, and whether there may be such a field; nil is any value.
func property(of map[string]any, name string, resolve func(string) map[string]any) (map[string]any, bool) {
	properties, _ := of["properties"].(map[string]any)
	if found, ok := properties[name].(map[string]any); ok {
		return resolved(found, resolve), true
	}
	open, _ := of["additionalProperties"].(map[string]any)
	return nil, of == nil || of[preserves] == true || open != nil || of["additionalProperties"] == true
}

// resolved follows the references of a schema.
func resolved(schema map[string]any, resolve func(string) map[string]any) map[string]any {
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
