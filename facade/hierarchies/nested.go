package hierarchies

import (
	"fmt"
	"reflect"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/codec"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

// absentError says that the type of an object does not have a path.
type absentError struct{ error }

// nested finds what stands at a path of the object.
func (c child) nested(path diff.Path) (found child, there bool, err error) {
	if c.typed == nil {
		return nestedRaw(c.raw, path)
	}
	value := reflect.ValueOf(c.whole)
	for i, key := range path {
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
		if value, there = fieldOf(value, key); !there {
			return child{}, false, absentError{
				fmt.Errorf("there is no field %s in %T", codec.FormatPath(path[:i+1]), c.whole),
			}
		}
	}
	if value.Kind() == reflect.Pointer && value.IsNil() {
		return child{}, false, nil
	}
	typed, ok := addressed(value).(metav1.Object)
	if !ok {
		return child{}, false, fmt.Errorf("it is a %s, which has no metadata", value.Type())
	}
	return child{typed: typed, whole: typed}, true, nil
}

func nestedRaw(at map[string]any, path diff.Path) (found child, there bool, err error) {
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
	return child{raw: at, whole: at}, true, nil
}

// fieldOf finds a field by its name in JSON, also one of an embedded struct.
func fieldOf(value reflect.Value, key string) (reflect.Value, bool) {
	for _, field := range reflect.VisibleFields(value.Type()) {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == key && field.IsExported() {
			found, err := value.FieldByIndexErr(field.Index)
			return found, err == nil
		}
	}
	return reflect.Value{}, false
}
