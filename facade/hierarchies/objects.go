package hierarchies

import (
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/runtime"
)

// Objects calls the function for each object among the children, as it is: a typed one, an unstructured one or a
// mapping. Unlike for other functions of this package, what client-go calls apply configurations are objects, too, and
// nil is one: it is given as nil, whatever its type. An error of the function ends it, and says where it stands.
func Objects(children any, act func(object any) error) error {
	if isAbsent(children) {
		return act(nil)
	}
	if declared, ok := children.(runtime.ApplyConfiguration); ok {
		return act(declared)
	}
	value := reflect.ValueOf(children)
	if value.Kind() != reflect.Slice && value.Kind() != reflect.Array {
		return each(children, func(c child) error { return act(c.whole) })
	}
	for i := range value.Len() {
		if err := Objects(addressed(value.Index(i)), act); err != nil {
			return fmt.Errorf("item %d: %w", i, err)
		}
	}
	return nil
}

// isAbsent tells whether there is nothing. A slice without items is something.
func isAbsent(children any) bool {
	switch value := reflect.ValueOf(children); value.Kind() {
	case reflect.Invalid:
		return true
	case reflect.Pointer, reflect.Map, reflect.Func:
		return value.IsNil()
	default:
		return false
	}
}
