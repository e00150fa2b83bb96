package kopf

import (
	"errors"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/codec"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/nested"
)

// Dynamic is an object without a Go type, such as those of [ForResource]. Its fields are read by [GetField] and [GetFieldOr], and
// changed by [SetField] and [RemoveField], in a [Change.TryPatch]:
//
//	type Change = kopf.Change[*kopf.Unstructured]
type Unstructured = unstructured.Unstructured

var errNilObject = errors.New("the object is nil")

// At reads a field of an object: kopf.GetField[int](c.Object, "spec.size"). The path is keys with dots between them; a key
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
func GetField[V any](object *Unstructured, path string) (V, error) {
	var into V
	if err := nested.Read(contentOf(object), path, &into); err != nil {
		var none V
		return none, fmt.Errorf(
			"reading %s of object %s as %s: %w", path, nameOf(object), reflect.TypeFor[V](), err,
		)
	}
	return into, nil
}

// AtOr is [GetField] with a value for objects that do not have the field, or have something else there:
// kopf.GetFieldOr(c.Object, "spec.size", 1). A path that is
// no path gives the fallback, too, and nothing tells: where that matters, use At.
func GetFieldOr[V any](object *Unstructured, path string, fallback V) V {
	value, err := GetField[V](object, path)
	if err != nil {
		return fallback
	}
	return value
}

// SetAt sets a field of an object to any value that encodes to JSON, which is copied; a time.Duration becomes a string
// such as "5m0s", and nil removes the field. For paths, see [GetField]. Mappings on the way are made where there is nothing.
// To last, it has to be done in a Patch:
//
//	c.TryPatch(func(o *kopf.Unstructured) error { return kopf.SetField(o, "status.phase", "Ready") })
//
// It is an error, and nothing is set, if the path leads through something else than a mapping, or if the value has no
// JSON form.
func SetField(object *Unstructured, path string, value any) error {
	err := errNilObject
	if object != nil {
		var content map[string]any
		if content, err = nested.Set(object.Object, path, value); err == nil {
			object.Object = content
			return nil
		}
	}
	return fmt.Errorf("setting %s of object %s: %w", path, nameOf(object), err)
}

// PatchAt changes one field of the handled object in the cluster: it is [SetField] in a [Change.TryPatch], and fails the
// handler with the error of SetAt. The value is copied at once; nil removes the field.
//
//	kopf.PatchField(c, "status.phase", "Ready")
//
// Kopf: patch.status['phase'] = 'Ready'.
func PatchField(h Call[*Unstructured], path string, value any) {
	copied, err := nested.Set(nil, "value", value)
	h.TryPatch(func(object *Unstructured) error {
		if err != nil {
			return fmt.Errorf("setting %s of object %s: %w", path, nameOf(object), err)
		}
		return SetField(object, path, copied["value"])
	})
}

// RemoveAt removes a field of an object; it need not be there. For paths, see [GetField]; for the rest, [SetField].
func RemoveField(object *Unstructured, path string) error {
	err := errNilObject
	if object != nil {
		err = nested.Remove(object.Object, path)
	}
	if err != nil {
		return fmt.Errorf("removing %s of object %s: %w", path, nameOf(object), err)
	}
	return nil
}

// contentOf gives what there is to read.
func contentOf(object *Unstructured) map[string]any {
	if object == nil {
		return nil
	}
	return object.Object
}

// nameOf is the object's name, for messages.
func nameOf(object *Unstructured) string {
	if object == nil {
		return "(nil)"
	}
	return codec.ObjectName(object.Object)
}
