package hierarchies

import (
	"fmt"
	"reflect"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/codec"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

// absentError reports that the Go type of an object does not have a path, in contrast to a path without a value.
type absentError struct{ error }

// childAtPath returns the object at a path inside of the child. For a typed child, there is false if a pointer on the
// path is nil, and the error is an absentError if its type lacks the path.
func (c child) childAtPath(path diff.Path) (found child, there bool, err error) {
	if c.typed == nil {
		return rawChildAtPath(c.raw, path)
	}
	value := reflect.ValueOf(c.object)
	for i, key := range path {
		// Follow pointers on the way; nil means that the child does not have this optional part.
		for value.Kind() == reflect.Pointer {
			if value.IsNil() {
				return child{}, false, nil
			}
			value = value.Elem()
		}
		if value.Kind() != reflect.Struct {
			return child{}, false, absentError{
				fmt.Errorf("%s is a %s: it has no fields", codec.FormatPath(path[:i]), value.Type()),
			}
		}
		if value, there = fieldByJSONName(value, key); !there {
			return child{}, false, absentError{
				fmt.Errorf("there is no field %s in %T", codec.FormatPath(path[:i+1]), c.object),
			}
		}
	}
	if value.Kind() == reflect.Pointer && value.IsNil() {
		return child{}, false, nil
	}
	// The methods of metav1.Object have pointer receivers, so the address is needed.
	typed, ok := pointerOrValue(value).(metav1.Object)
	if !ok {
		return child{}, false, fmt.Errorf("it is a %s, which has no metadata", value.Type())
	}
	return child{typed: typed, object: typed}, true, nil
}

// rawChildAtPath returns the object at a path inside of a mapping. A value other than a mapping on the path is an
// error, as in Kopf.
func rawChildAtPath(at map[string]any, path diff.Path) (found child, there bool, err error) {
	for i, key := range path {
		value, there := at[key]
		if !there {
			return child{}, false, nil
		}
		next, ok := value.(map[string]any)
		if !ok {
			return child{}, false, fmt.Errorf("%s is a %T, not a mapping", codec.FormatPath(path[:i+1]), value)
		}
		at = next
	}
	return child{raw: at, object: at}, true, nil
}

// fieldByJSONName returns the struct field with a JSON name, including fields of embedded structs.
func fieldByJSONName(value reflect.Value, key string) (reflect.Value, bool) {
	for _, field := range reflect.VisibleFields(value.Type()) {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == key && field.IsExported() {
			// FieldByIndex would panic for a field of an embedded nil pointer.
			found, err := value.FieldByIndexErr(field.Index)
			return found, err == nil
		}
	}
	return reflect.Value{}, false
}
