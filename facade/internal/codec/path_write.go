package codec

import (
	"errors"
	"fmt"
	"time"

	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

// SetPath sets the value at a path and returns the object. It creates the object if it is nil, and missing maps on the
// path. Null removes the value. After an error, the object is unchanged.
func SetPath(object map[string]any, text string, value any) (map[string]any, error) {
	path, err := ParsePath(text)
	if err != nil {
		return nil, err
	}
	// The encoded value shares nothing with the argument, which the caller may modify later.
	encoded, err := encodeField(value)
	if err != nil {
		return nil, fmt.Errorf("the value is not a JSON value: %w", err)
	}
	// All checks precede the first change.
	parent, there, err := parentMap(object, path)
	switch {
	case err != nil:
		return nil, err
	case encoded != nil:
		return setCreatingMaps(object, path, encoded), nil
	// A null removes the value, and the maps above it stay.
	case there:
		delete(parent, path[len(path)-1])
	}
	return object, nil
}

// setCreatingMaps sets the value and creates missing maps on the path. The caller has checked that nothing but maps or
// absent values is on the path.
func setCreatingMaps(object map[string]any, path diff.Path, value any) map[string]any {
	if object == nil {
		object = map[string]any{}
	}
	// The last key is set below; the others lead to its map.
	at := object
	for _, key := range path[:len(path)-1] {
		// A null on the path counts as absent.
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

// encodeField returns the JSON form of a value. A duration becomes a string, as ReadPath expects it.
func encodeField(value any) (any, error) {
	if duration, ok := value.(time.Duration); ok {
		return duration.String(), nil
	}
	return EncodeValue(value)
}

// parentMap returns the map that contains the value at the path, and whether that map exists. A value on the path that
// is not a map is an error.
func parentMap(object map[string]any, path diff.Path) (parent map[string]any, there bool, err error) {
	above := path[:len(path)-1]
	value, err := valueAtPath(object, above)
	if errors.Is(err, ErrNoValue) {
		return nil, false, nil
	} else if err != nil {
		return nil, false, err
	}
	parent, there = value.(map[string]any)
	if !there {
		err = noMapError(above, value)
	}
	return parent, there, err
}
