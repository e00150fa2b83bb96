package facade

import (
	"errors"
	"fmt"
	"time"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/codec"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

var errNilObject = errors.New("the object is nil")

// SetAt sets a field of an object to any value that encodes to JSON, which is copied; a time.Duration becomes a string
// such as "5m0s", and nil removes the field. For paths, see [At]. Mappings on the way are made where there is nothing.
// To last, it has to be done in a Patch:
//
//	c.TryPatch(func(o kopf.Dynamic) error { return kopf.SetAt(o, "status.phase", "Ready") })
//
// It is an error, and nothing is set, if the path leads through something else than a mapping, or if the value has no
// JSON form.
func SetAt(object Dynamic, path string, value any) error {
	if err := setAt(object, path, value); err != nil {
		return fmt.Errorf("setting %s of object %s: %w", path, nameOf(object), err)
	}
	return nil
}

func setAt(object Dynamic, text string, value any) error {
	path, err := codec.ParsePath(text)
	if err != nil {
		return err
	}
	if object == nil {
		return errNilObject
	}
	encoded, err := encodeField(value)
	if err != nil {
		return fmt.Errorf("the value is not a JSON value: %w", err)
	}
	if encoded == nil {
		return removeAt(object, path)
	}
	if _, _, err := parentOf(object, path); err != nil {
		return err
	}
	if object.Object == nil {
		object.Object = map[string]any{}
	}
	put(object.Object, path, encoded)
	return nil
}

// put makes the mappings on the way where there is nothing. That nothing else is there was checked before.
func put(at map[string]any, path diff.Path, value any) {
	for _, key := range path[:len(path)-1] {
		next, ok := at[key].(map[string]any)
		if !ok || next == nil {
			next = map[string]any{}
			at[key] = next
		}
		at = next
	}
	at[path[len(path)-1]] = value
}

// encodeField gives the JSON form of a value.
func encodeField(value any) (any, error) {
	if duration, ok := value.(time.Duration); ok {
		return duration.String(), nil
	}
	return codec.EncodeValue(value)
}

// RemoveAt removes a field of an object; it need not be there. For paths, see [At]; for the rest, [SetAt].
func RemoveAt(object Dynamic, path string) error {
	parsed, err := codec.ParsePath(path)
	switch {
	case err != nil:
	case object == nil:
		err = errNilObject
	default:
		err = removeAt(object, parsed)
	}
	if err != nil {
		return fmt.Errorf("removing %s of object %s: %w", path, nameOf(object), err)
	}
	return nil
}

func removeAt(object Dynamic, path diff.Path) error {
	parent, there, err := parentOf(object, path)
	if err != nil || !there {
		return err
	}
	delete(parent, path[len(path)-1])
	return nil
}

// parentOf finds the mapping that has, or would have, what is at the path. Something else than a mapping on the way is
// an error.
func parentOf(object Dynamic, path diff.Path) (parent map[string]any, there bool, err error) {
	parent = object.Object
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
