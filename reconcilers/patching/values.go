package patching

import (
	"encoding/json"
	"math"

	kjson "sigs.k8s.io/json"
)

// toJSON returns the value itself if it is a JSON tree already, else what it encodes to.
func toJSON(value any) (any, error) {
	if isJSON(value) {
		return value, nil
	}
	data, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	var out any
	if err := kjson.UnmarshalCaseSensitivePreserveInts(data, &out); err != nil {
		return nil, err
	}
	return out, nil
}

// isJSON is false for nil mappings and lists, too: they encode to null, and are to be treated as such.
func isJSON(value any) bool {
	switch value := value.(type) {
	case nil, bool, int64, string:
		return true
	case float64:
		return !math.IsNaN(value) && !math.IsInf(value, 0)
	case []any:
		for _, item := range value {
			if !isJSON(item) {
				return false
			}
		}
		return value != nil
	case map[string]any:
		for _, field := range value {
			if !isJSON(field) {
				return false
			}
		}
		return value != nil
	default:
		return false
	}
}

// hasList tells whether the value is, or has anywhere in it, a list.
func hasList(value any) bool {
	switch value := value.(type) {
	case []any:
		return true
	case map[string]any:
		for _, field := range value {
			if hasList(field) {
				return true
			}
		}
	}
	return false
}
