package storage

import (
	"errors"
	"fmt"
	"strings"

	"github.com/kopf-runtime/kopf-runtime/storage/jsontext"
)

// Annotations returns the annotations of a body: shared with it, to be read only. None, an absent metadata included,
// are nil; so is a null. It is an error if metadata or annotations are anything but a mapping: that is not a Kubernetes
// object.
func Annotations(body map[string]any) (map[string]any, error) {
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

// AnnotationsLimit is the number of bytes of keys and values that the API server accepts for one object.
const AnnotationsLimit = 256 << 10

// AnnotationsSize returns the size of the annotations with the changes of a merge-patch, as the API server counts it.
func AnnotationsSize(annotations, changed map[string]any) (size int) {
	for key, value := range changed {
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

// Annotate puts one value under each of the names, which are full annotation keys, into the annotations of a
// merge-patch in place; nil removes. It is an error if the patch has something else than a mapping in the way; the
// patch is not changed then.
func Annotate(patch map[string]any, names []string, value any) error {
	for _, name := range names {
		if err := Put(patch, []string{"metadata", "annotations", name}, value); err != nil {
			return err
		}
	}
	return nil
}

// AnnotateOnce does as [Annotate] does for one name, unless the body or the patch has that annotation already, whatever
// its value: a null in the patch, too. It is for marks of which only the presence is looked at.
func AnnotateOnce(patch, body map[string]any, name string, value any) error {
	for _, holder := range []map[string]any{body, patch} {
		// A malformed one has no annotations, and no mark; if it is the patch, Put will say so.
		annotations, _ := Annotations(holder)
		if _, ok := annotations[name]; ok {
			return nil
		}
	}
	return Put(patch, []string{"metadata", "annotations", name}, value)
}

// childMapping gives the mapping under the key; nil if there is no such key.
func childMapping(parent map[string]any, key string) (map[string]any, error) {
	value, ok := parent[key]
	if !ok {
		return nil, nil
	}
	child, ok := value.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("%s is not a mapping but %s", key, typeName(value))
	}
	return child, nil
}

// typeName names the JSON type of what is not a mapping, for messages.
func typeName(value any) string {
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
		return nil, fmt.Errorf("it is not a text but %s", typeName(value))
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
		return nil, fmt.Errorf("it is not a json object but %s", typeName(tree))
	}
	return object, nil
}
