package codec

import (
	"errors"
	"fmt"
	"time"

	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

// ErrNoValue is the error for a path without a value, or with null.
var ErrNoValue = errors.New("there is no value")

// ReadPath decodes the value at a path of an object into a pointer. A time.Duration is parsed from a string. The
// decoded value shares nothing with the object. Errors never contain texts of the object, which may be secret.
func ReadPath(object map[string]any, path string, into any) error {
	keys, err := ParsePath(path)
	if err != nil {
		return err
	}
	value, err := valueAtPath(object, keys)
	if err != nil {
		return err
	}
	return decodeInto(value, into)
}

// valueAtPath returns the value at a path, or ErrNoValue. It is a part of the object, not a copy.
func valueAtPath(object map[string]any, path diff.Path) (any, error) {
	var value any = object
	for i, key := range path {
		// Lists are not searched: a path has no syntax for indices.
		mapping, ok := value.(map[string]any)
		switch {
		// A missing parent has no value either.
		case !ok && value == nil:
			return nil, ErrNoValue
		case !ok:
			return nil, noMapError(path[:i], value)
		}
		value = mapping[key]
	}
	if value == nil {
		return nil, ErrNoValue
	}
	return value, nil
}

// noMapError returns the error for a path that continues after a value without keys.
func noMapError(path diff.Path, value any) error {
	return fmt.Errorf("%s is %s: it has no keys", FormatPath(path), describeType(value))
}

// describeType names the type of a value for messages. It never contains a text of the object.
func describeType(value any) string {
	switch value := value.(type) {
	case string:
		return "a string"
	case bool:
		return fmt.Sprintf("the bool %t", value)
	case []any:
		return fmt.Sprintf("a list of %d items", len(value))
	case map[string]any:
		return fmt.Sprintf("a mapping of %d keys", len(value))
	// Numbers and booleans are not texts, so they are shown.
	case int64, float64, int, int32:
		return fmt.Sprintf("the number %v", value)
	default:
		return fmt.Sprintf("a %T", value)
	}
}

// decodeInto decodes a value of an object. It handles durations, which are strings in Kubernetes objects.
func decodeInto(value, into any) error {
	// JSON has no durations; decoding into an int64 would accept only nanoseconds.
	if duration, ok := into.(*time.Duration); ok {
		return decodeDuration(value, duration)
	}
	err := DecodeValue(value, into)
	if err == nil {
		return nil
	}
	var inside *MismatchError
	switch value.(type) {
	case []any, map[string]any: // the mismatch may be inside; other errors may contain texts of the object
		if errors.As(err, &inside) {
			return fmt.Errorf("it is %s: %w", describeType(value), inside)
		}
	}
	// The decoder's error is omitted, because it can quote the value.
	return fmt.Errorf("it is %s", describeType(value))
}

// decodeDuration parses a duration. Its errors do not repeat the text, which may be secret.
func decodeDuration(value any, into *time.Duration) (err error) {
	text, ok := value.(string)
	if !ok {
		return fmt.Errorf(`it is %s: a duration is a string with a unit, such as "5m"`, describeType(value))
	}
	if *into, err = time.ParseDuration(text); err != nil {
		return errors.New(`it is a string, but not a duration such as "5m" or "1h30m"`)
	}
	return nil
}
