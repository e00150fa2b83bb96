package vectors

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"

	kjson "sigs.k8s.io/json"
)

// Leaves is a JSON value with other leaves: change is asked for every value in it that is neither a list nor an object.
func Leaves(value any, change func(leaf any) any) any {
	switch value := value.(type) {
	case []any:
		list := make([]any, len(value))
		for i, element := range value {
			list[i] = Leaves(element, change)
		}
		return list
	case map[string]any:
		object := make(map[string]any, len(value))
		for key, element := range value {
			object[key] = Leaves(element, change)
		}
		return object
	}
	return change(value)
}

// Normal is a JSON value in the form in which stored values are compared: whole
// floats as integers; texts of JSON objects decoded, with what remains to be
// said of the text beside. Every field of every object goes through rewrite, if
// that is given, when its value is in that form already.
func Normal(value any, rewrite func(key string, value any) any) any {
	switch value := value.(type) {
	case float64:
		if math.Trunc(value) == value && math.Abs(value) < 1<<53 {
			return int64(value)
		}
	case string:
		return normalText(value, rewrite)
	case []any:
		list := make([]any, len(value))
		for i, element := range value {
			list[i] = Normal(element, rewrite)
		}
		return list
	case map[string]any:
		object := make(map[string]any, len(value))
		for key, element := range value {
			object[key] = Normal(element, rewrite)
			if rewrite != nil {
				object[key] = rewrite(key, object[key])
			}
		}
		return object
	}
	return value
}

func normalText(text string, rewrite func(key string, value any) any) any {
	var object map[string]any
	if !strings.HasPrefix(text, "{") || kjson.UnmarshalCaseSensitivePreserveInts([]byte(text), &object) != nil {
		return text
	}
	content, newline := strings.CutSuffix(text, "\n")
	var compacted bytes.Buffer
	_ = json.Compact(&compacted, []byte(content)) // it was decoded already
	return map[string]any{
		"object":  Normal(object, rewrite),
		"compact": compacted.String() == content,
		"ascii":   strings.IndexFunc(text, func(char rune) bool { return char > '~' }) < 0,
		"newline": newline,
	}
}
