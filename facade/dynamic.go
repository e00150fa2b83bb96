package kopf

import (
	"errors"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/codec"
)

// Unstructured is an object without a Go type, see [ForResource]:
//
//	type Change = kopf.Change[*kopf.Unstructured]
type Unstructured = unstructured.Unstructured

var errNilObject = errors.New("the object is nil")

// GetField returns a copy of a field as V, any type that JSON decodes into. A time.Duration is read from strings such
// as "5m". Keys with dots need double quotes. Paths cannot lead into lists. Kopf: spec.get, dicts.resolve.
//
//	name, err := kopf.GetField[string](c.Object, `metadata.labels."app.kubernetes.io/name"`)
//
// An absent or null field is [ErrNoValue]; a wrong type or path is another error.
func GetField[V any](object *Unstructured, path string) (V, error) {
	var into V
	if err := codec.ReadPath(contentOf(object), path, &into); err != nil {
		var none V
		return none, fmt.Errorf(
			"reading %s of object %s as %s: %w", path, nameOf(object), reflect.TypeFor[V](), err,
		)
	}
	return into, nil
}

// GetFieldOr is [GetField] with a fallback for any error: kopf.GetFieldOr(c.Object, "spec.size", 1).
func GetFieldOr[V any](object *Unstructured, path string, fallback V) V {
	value, err := GetField[V](object, path)
	if err != nil {
		return fallback
	}
	return value
}

// SetField sets a field to a copy of the value, in a [Change.TryPatch]. Nil removes the field. Paths through anything
// but mappings, and values that do not encode to JSON, are errors.
func SetField(object *Unstructured, path string, value any) error {
	err := errNilObject
	if object != nil {
		var content map[string]any
		if content, err = codec.SetPath(object.Object, path, value); err == nil {
			object.Object = content
			return nil
		}
	}
	return fmt.Errorf("setting %s of object %s: %w", path, nameOf(object), err)
}

// PatchField is [SetField] in a [Change.TryPatch]. Kopf: patch.status['phase'] = 'Ready'.
//
//	kopf.PatchField(c, "status.phase", "Ready")
func PatchField(h Call[*Unstructured], path string, value any) {
	// Copy the value now: the function runs later, and the handler may change the value until then.
	copied, err := codec.SetPath(nil, "value", value)
	h.TryPatch(func(object *Unstructured) error {
		if err != nil {
			return fmt.Errorf("setting %s of object %s: %w", path, nameOf(object), err)
		}
		return SetField(object, path, copied["value"])
	})
}

// RemoveField removes a field, which may be absent. For paths, see [GetField].
func RemoveField(object *Unstructured, path string) error {
	err := errNilObject
	if object != nil {
		_, err = codec.SetPath(object.Object, path, nil)
	}
	if err != nil {
		return fmt.Errorf("removing %s of object %s: %w", path, nameOf(object), err)
	}
	return nil
}

// contentOf returns the content of an object, or nil.
func contentOf(object *Unstructured) map[string]any {
	if object == nil {
		return nil
	}
	return object.Object
}

// nameOf returns the name of the object for messages.
func nameOf(object *Unstructured) string {
	if object == nil {
		return "(nil)"
	}
	return codec.ObjectName(object.Object)
}
