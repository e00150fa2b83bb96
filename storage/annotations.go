package storage

import "fmt"

// Annotations returns the annotations of a body: shared with it, to be read only. None, an absent metadata included,
// are nil; so is a null. It is an error if metadata or annotations are anything but a mapping: that is not a Kubernetes
// object.
func Annotations(body map[string]any) (map[string]any, error) {
	metadata, err := mapping(body, "metadata")
	if err != nil {
		return nil, fmt.Errorf("reading annotations: %w", err)
	}
	if metadata["annotations"] == nil {
		return nil, nil
	}
	annotations, err := mapping(metadata, "annotations")
	if err != nil {
		return nil, fmt.Errorf("reading annotations: metadata: %w", err)
	}
	return annotations, nil
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

// mapping is the mapping under the key; nil if there is no such key.
func mapping(parent map[string]any, key string) (map[string]any, error) {
	value, ok := parent[key]
	if !ok {
		return nil, nil
	}
	child, ok := value.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("%s is not a mapping but %s", key, kind(value))
	}
	return child, nil
}

// kind names the JSON type of what is not a mapping, for messages.
func kind(value any) string {
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
