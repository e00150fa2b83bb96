package facade

import (
	"errors"
	"fmt"
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/codec"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

// Dynamic is an object without a Go type, such as those of [ForResource]. Its fields are read by [At] and [AtOr], and
// changed by [SetAt] and [RemoveAt], in a [Change.TryPatch]:
//
//	type Change = kopf.Change[kopf.Dynamic]
type Dynamic = *unstructured.Unstructured

// ErrNoValue says that an object has nothing at a path: see [At].
var ErrNoValue = errors.New("there is no value")

// At reads a field of an object: kopf.At[int](c.Object, "spec.size"). The path is keys with dots between them; a key
// with dots of its own stands in double quotes: `metadata.labels."app.kubernetes.io/name"`. There are no paths into
// lists: read the list, such as by At[[]string] or by At[[]Item] with a struct with json tags.
//
// V is any type that JSON decodes into: numbers, strings, bools, slices, maps, structs, time.Time, any. What is read is
// a copy. A time.Duration is read from a string such as "5m", and not from a number, which has no unit. Kopf: spec.get,
// dicts.resolve.
//
// # Errors
//
// An absent field, and a null one, is an error that errors.Is recognises as [ErrNoValue]; so is one in something
// absent. A value of another type, a number that V cannot hold, and a path that leads through something else than a
// mapping is another error, which names the path, V and what is there, but no text that is there: it may be secret.
func At[V any](object Dynamic, path string) (V, error) {
	var into V
	value, err := valueOf(object, path)
	if err == nil {
		err = decodeInto(value, &into)
	}
	if err != nil {
		var none V
		return none, fmt.Errorf(
			"reading %s of object %s as %s: %w", path, nameOf(object), reflect.TypeFor[V](), err,
		)
	}
	return into, nil
}

// AtOr is [At] with a value for objects that do not have the field, or have something else there:
// kopf.AtOr(c.Object, "spec.size", 1). A path that is
// no path gives the fallback, too, and nothing tells: where that matters, use At.
func AtOr[V any](object Dynamic, path string, fallback V) V {
	value, err := At[V](object, path)
	if err != nil {
		return fallback
	}
	return value
}

// valueOf finds the value at a path; it is a part of the object.
func valueOf(object Dynamic, text string) (any, error) {
	path, err := codec.ParsePath(text)
	if err != nil {
		return nil, err
	}
	if object == nil {
		return nil, ErrNoValue
	}
	var value any = object.Object
	for i, key := range path {
		mapping, ok := value.(map[string]any)
		switch {
		case !ok && value == nil:
			return nil, ErrNoValue
		case !ok:
			return nil, noMapping(path[:i], value)
		}
		value = mapping[key]
	}
	if value == nil {
		return nil, ErrNoValue
	}
	return value, nil
}

// noMapping is for paths that lead into something that has no keys.
func noMapping(path diff.Path, value any) error {
	return fmt.Errorf("%s is %s: it has no keys", codec.FormatPath(path), describe(value))
}

// describe says what a value is, without any text of it.
func describe(value any) string {
	switch value := value.(type) {
	case string:
		return "a string"
	case bool:
		return fmt.Sprintf("the bool %t", value)
	case []any:
		return fmt.Sprintf("a list of %d items", len(value))
	case map[string]any:
		return fmt.Sprintf("a mapping of %d keys", len(value))
	case int64, float64, int, int32:
		return fmt.Sprintf("the number %v", value)
	default:
		return fmt.Sprintf("a %T", value)
	}
}

// decodeInto decodes a value of an object.
func decodeInto(value, into any) error {
	if duration, ok := into.(*time.Duration); ok {
		return decodeDuration(value, duration)
	}
	err := codec.DecodeValue(value, into)
	if err == nil {
		return nil
	}
	var inside *codec.MismatchError
	switch value.(type) {
	case []any, map[string]any: // the mismatch may be within; other errors may have texts of the object in them
		if errors.As(err, &inside) {
			return fmt.Errorf("it is %s: %w", describe(value), inside)
		}
	}
	return fmt.Errorf("it is %s", describe(value))
}

func decodeDuration(value any, into *time.Duration) (err error) {
	text, ok := value.(string)
	if !ok {
		return fmt.Errorf(`it is %s: a duration is a string with a unit, such as "5m"`, describe(value))
	}
	if *into, err = time.ParseDuration(text); err != nil {
		return errors.New(`it is a string, but not a duration such as "5m" or "1h30m"`)
	}
	return nil
}

// nameOf is the object's name, for messages.
func nameOf(object Dynamic) string {
	if object == nil {
		return "(nil)"
	}
	return codec.ObjectName(object.Object)
}
