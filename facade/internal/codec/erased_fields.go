package codec

import (
	"reflect"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

// ErasedFields returns the fields of the raw object that are lost if a client replaces the object on the API server by
// the given one. These are the fields that its Go type cannot hold. Only top-level fields that the function accepts are
// compared. The paths have no indices of lists. A zero value that omitempty leaves out does not count as lost.
func ErasedFields(raw map[string]any, object client.Object, accepts func(key string) bool) (fields []string) {
	typ := reflect.TypeOf(object)
	// An unstructured object can hold every field.
	if typ.Kind() != reflect.Pointer || typ.Elem() == unstructuredType {
		return nil
	}
	// The raw object passes through the Go type and back; the difference is lost.
	e := eraser{codec: New[client.Object](typ.Elem())}
	decoded, _ := e.codec.Decode(raw) // values that do not fit are lost as well
	kept, err := e.codec.encodeRaw(decoded)
	if err != nil {
		return nil
	}
	for key, value := range raw {
		if accepts(key) {
			e.compareValues(diff.Path{key}, value, kept[key])
		}
	}
	// Several items of a list yield the same path.
	slices.Sort(e.fields)
	return slices.Compact(e.fields)
}

// eraser collects the fields that one Go type cannot hold.
type eraser struct {
	codec  *Codec[client.Object]
	fields []string
}

// compareValues compares a raw value with its value after the round trip through the Go type, which may be nil.
func (e *eraser) compareValues(path diff.Path, raw, kept any) {
	switch {
	case raw == nil:
	case kept == nil:
		// Empty values that the type knows were left out by omitempty. They are only lost if the type has no such
		// field. The copy is necessary because [RemoveEmpty] modifies its argument.
		if RemoveEmpty(diff.DeepCopy(raw)) == nil || reflect.ValueOf(raw).IsZero() {
			if e.codec.CheckPart(path) == nil {
				return
			}
		}
		e.fields = append(e.fields, FormatPath(path))
	default:
		e.compareParts(path, raw, kept)
	}
}

// compareParts compares the parts of a map or list. A list of another length is not compared: its items cannot be
// matched.
func (e *eraser) compareParts(path diff.Path, raw, kept any) {
	switch raw := raw.(type) {
	case map[string]any:
		if kept, ok := kept.(map[string]any); ok {
			for key, value := range raw {
				// Clip forces append to copy, since the paths of siblings would share one array.
				e.compareValues(append(slices.Clip(path), key), value, kept[key])
			}
		}
	// Items have the path of their list.
	case []any:
		if kept, ok := kept.([]any); ok && len(kept) == len(raw) {
			for i, item := range raw {
				e.compareValues(path, item, kept[i])
			}
		}
	}
}
