package storage

import (
	"errors"
	"fmt"
	"strings"

	"github.com/kopf-runtime/kopf-runtime/internal/jsontext"
)

// AnnotationsOf returns the annotations of a body. The result is shared with the body and must not be modified. It is
// nil if the metadata or the annotations are absent, or if the annotations are null.
//
// # Errors
//
// It returns an error if the metadata or the annotations are not a mapping, because the body is not a Kubernetes object
// then.
func AnnotationsOf(body map[string]any) (map[string]any, error) {
	metadata, err := childMapping(body, "metadata")
	if err != nil {
		return nil, fmt.Errorf("reading annotations: %w", err)
	}
	if metadata["annotations"] == nil {
		return nil, nil
	}
	annotations, err := childMapping(metadata, "annotations")
	if err != nil {
		return nil, fmt.Errorf("reading annotations: metadata: %w", err)
	}
	return annotations, nil
}

// AnnotationsLimit is the API server's limit for the annotations of one object: 256 KiB of keys and values.
const AnnotationsLimit = 256 << 10

// AnnotationsSize returns the size of the annotations after a merge-patch with the given changes, as the API server
// counts it: the bytes of all keys and values.
func AnnotationsSize(annotations, changed map[string]any) (size int) {
	for key, value := range changed {
		// A null removes the annotation, so it does not count.
		if text, ok := value.(string); ok {
			size += len(key) + len(text)
		}
	}
	for key, value := range annotations {
		text, ok := value.(string)
		if _, replaced := changed[key]; ok && !replaced {
			size += len(key) + len(text)
		}
	}
	return size
}

// SetAnnotations sets one value for each of the names, which are full annotation keys, in the annotations of a
// merge-patch. Nil removes the annotation. The patch is changed in place.
//
// # Errors
//
// It returns an error if the patch has a value that is not a mapping in place of the metadata or of the annotations.
// The patch does not change then.
func SetAnnotations(patch map[string]any, names []string, value any) error {
	for _, name := range names {
		if err := PutValue(patch, []string{"metadata", "annotations", name}, value); err != nil {
			return err
		}
	}
	return nil
}

// SetAnnotationOnce sets the annotation like [SetAnnotations], unless the body or the patch already has it with any
// value, including a null in the patch. It is for markers, for which only the presence matters.
func SetAnnotationOnce(patch, body map[string]any, name string, value any) error {
	for _, holder := range []map[string]any{body, patch} {
		// Malformed metadata does not have a marker. If the patch is malformed, the write below returns the error.
		annotations, _ := AnnotationsOf(holder)
		if _, ok := annotations[name]; ok {
			return nil
		}
	}
	return PutValue(patch, []string{"metadata", "annotations", name}, value)
}

// childMapping returns the mapping under the key, and nil if the key is absent. A null is an error: in a merge-patch,
// it removes the whole place.
func childMapping(parent map[string]any, key string) (map[string]any, error) {
	value, ok := parent[key]
	if !ok {
		return nil, nil
	}
	child, ok := value.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("%s is not a mapping but %s", key, jsonTypeName(value))
	}
	return child, nil
}

// jsonTypeName returns the JSON type of a value that is not a mapping, for error messages.
func jsonTypeName(value any) string {
	switch value.(type) {
	case nil:
		return "null"
	case bool:
		return "a boolean"
	case string:
		return "a string"
	case []any:
		return "a list"
	case int64, float64:
		return "a number"
	}
	return fmt.Sprintf("%T", value)
}

// excerptLength is the length of excerpts in bytes. It keeps log lines and events short when a user's text is long.
const excerptLength = 256

// TextExcerpt returns the text in the form in which messages quote it: a long text is cut, and ends with an ellipsis.
func TextExcerpt(text string) string { return CutText(text, excerptLength) }

// CutText returns a text of more bytes than the limit cut there, with an ellipsis.
func CutText(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	// The cut can split a character.
	return strings.ToValidUTF8(text[:limit], "") + "…"
}

// ParseObject decodes a JSON object from the value of an annotation or of a field that contains JSON as text. It
// returns nil if the value is absent, nil, or the text "null". Integers are int64 and all other numbers are float64, as
// in apimachinery's unstructured objects.
//
// # Errors
//
// It returns an error if the value is not a string, if the text is empty or not JSON, or if the JSON is not an object.
func ParseObject(value any) (map[string]any, error) {
	if value == nil {
		return nil, nil
	}
	text, ok := value.(string)
	if !ok {
		return nil, fmt.Errorf("it is not a text but %s", jsonTypeName(value))
	}
	if text == "" {
		return nil, errors.New("it is empty")
	}
	tree, err := jsontext.DecodeString(text)
	if err != nil {
		return nil, err
	}
	object, ok := tree.(map[string]any)
	if !ok && tree != nil {
		return nil, fmt.Errorf("it is not a json object but %s", jsonTypeName(tree))
	}
	return object, nil
}
