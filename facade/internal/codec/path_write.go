package codec

import (
	"fmt"
	"time"

	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

// SetPath sets the value at a path, and returns the object, which is made if there is none. Missing mappings on the way
// are made. Null removes the value. After an error, the object is unchanged.
func SetPath(object map[string]any, text string, value any) (map[string]any, error) {
	path, err := ParsePath(text)
	if err != nil {
		return nil, err
	}
	encoded, err := encodeField(value)
	if err != nil {
		return nil, fmt.Errorf("the value is not a JSON value: %w", err)
	}
	parent, there, err := parentOf(object, path)
	switch {
	case err != nil:
		return nil, err
	case encoded != nil:
		return put(object, path, encoded), nil
	case there:
		delete(parent, path[len(path)-1])
	}
	return object, nil
}

// RemovePath removes the value at a path, if there is one.
func RemovePath(object map[string]any, text string) error {
	path, err := ParsePath(text)
	if err != nil {
		return err
	}
	parent, there, err := parentOf(object, path)
	if err != nil || !there {
		return err
	}
	delete(parent, path[len(path)-1])
	return nil
}

// put makes the mappings on the way where there is nothing. That nothing else is there was checked before.
func put(object map[string]any, path diff.Path, value any) map[string]any {
	if object == nil {
		object = map[string]any{}
	}
	at := object
	for _, key := range path[:len(path)-1] {
		next, ok := at[key].(map[string]any)
		if !ok || next == nil {
			next = map[string]any{}
			at[key] = next
		}
		at = next
	}
	at[path[len(path)-1]] = value
	return object
}

// encodeField gives the JSON form of a value.
func encodeField(value any) (any, error) {
	if duration, ok := value.(time.Duration); ok {
		return duration.String(), nil
	}
	return EncodeValue(value)
}

// parentOf finds the mapping that has, or would have, what is at the path. Something else than a mapping on the way is
// an error.
func parentOf(object map[string]any, path diff.Path) (parent map[string]any, there bool, err error) {
	parent = object
	for i, key := range path[:len(path)-1] {
		value := parent[key]
		if value == nil {
			return nil, false, nil
		}
		next, ok := value.(map[string]any)
		if !ok {
			return nil, false, noMapping(path[:i+1], value)
		}
		parent = next
	}
	return parent, true, nil
}
