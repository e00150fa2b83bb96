package hierarchies

import (
	"errors"
	"iter"
	"reflect"

	"k8s.io/apimachinery/pkg/runtime"
)

// errEnough ends an iteration that the caller has left.
var errEnough = errors.New("enough")

// Objects returns each object among the children, as it is: a typed one, an unstructured one or a mapping. Unlike for
// other functions of this package, what client-go calls apply configurations are objects, too, and nil is one: it is
// returned as nil, whatever its type. Anything else is returned as an error, and the next ones follow.
func Objects(children any) iter.Seq2[any, error] {
	return func(yield func(any, error) bool) { yieldObjects(children, yield) }
}

// yieldObjects returns false if the caller has left the iteration.
func yieldObjects(children any, yield func(any, error) bool) bool {
	if isAbsent(children) {
		return yield(nil, nil)
	}
	if declared, ok := children.(runtime.ApplyConfiguration); ok {
		return yield(declared, nil)
	}
	value := reflect.ValueOf(children)
	switch {
	case value.Kind() == reflect.Slice || value.Kind() == reflect.Array:
		for i := range value.Len() {
			if !yieldObjects(addressed(value.Index(i)), yield) {
				return false
			}
		}
		return true
	case value.Kind() == reflect.Func && value.Type().CanSeq():
		for item := range value.Seq() {
			if !yieldObjects(item.Interface(), yield) {
				return false
			}
		}
		return true
	case value.Kind() == reflect.Pointer && value.Elem().Kind() == reflect.Slice:
		return yieldObjects(value.Elem().Interface(), yield)
	}
	err := each(children, func(c child) error {
		if !yield(c.whole, nil) {
			return errEnough
		}
		return nil
	})
	switch {
	case errors.Is(err, errEnough):
		return false
	case err != nil:
		return yield(nil, err)
	default:
		return true
	}
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
