package storage

import (
	"errors"
	"fmt"
	"strings"

	"sigs.k8s.io/json"
)

// excerptLength is how many bytes of somebody's text messages quote.
const excerptLength = 256

// Excerpt is the text as messages quote it: the beginning, if it is long, and an ellipsis.
func Excerpt(text string) string {
	if len(text) <= excerptLength {
		return text
	}
	return strings.ToValidUTF8(text[:excerptLength], "") + "…"
}

// Parse reads a JSON object from the value of an annotation or of a field that holds JSON as text. What is absent, a
// nil value or the text "null", is nil. Integers come as int64, all other numbers as float64, as in objects of
// Kubernetes.
//
// It is an error if the value is not a string, or the text is not JSON (an empty one is not), or not that of an object.
func Parse(value any) (map[string]any, error) {
	if value == nil {
		return nil, nil
	}
	text, ok := value.(string)
	if !ok {
		return nil, fmt.Errorf("it is not a text but %s", kind(value))
	}
	if text == "" {
		return nil, errors.New("it is empty")
	}
	var tree any
	if err := json.UnmarshalCaseSensitivePreserveInts([]byte(text), &tree); err != nil {
		return nil, err
	}
	object, ok := tree.(map[string]any)
	if !ok && tree != nil {
		return nil, fmt.Errorf("it is not a json object but %s", kind(tree))
	}
	return object, nil
}
