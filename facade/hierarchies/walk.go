package hierarchies

import (
	"errors"
	"fmt"
	"iter"
	"reflect"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

var (
	errNilMapping = errors.New("the mapping is nil, so nothing can be set in it")
	errStopWalk   = errors.New("enough") // ends the iteration over a list
)

// item is one step of a walk through children: an object, nil, or an error.
type item struct {
	child       // for an apply configuration, which is also an error, only whole is set
	path  []int // indices in nested slices and iterators; the walk reuses it, so it is valid until the next step
	isNil bool
	err   error
}

// Objects iterates over the objects among the children: typed objects, unstructured objects and mappings, as they are.
// Unlike other functions of this package, it also returns apply configurations of client-go, and a nil child as nil,
// whatever its type. Any other value is returned as an error, and the iteration continues.
func Objects(children any) iter.Seq2[any, error] {
	return func(yield func(any, error) bool) {
		walkItems(children, nil, func(one item) bool {
			// These items are errors only for functions that change metadata.
			if _, isDeclared := one.object.(runtime.ApplyConfiguration); isDeclared || one.isNil {
				one.err = nil
			}
			return yield(one.object, one.err)
		})
	}
}

// walkItems calls visit for each item among the children. It returns false as soon as visit does.
func walkItems(children any, path []int, visit func(one item) bool) bool {
	if isNil(children) {
		// A nil pointer or iterator is skipped. A nil mapping is an error, because nothing can be set in it.
		one := item{path: path, isNil: true}
		if _, isMapping := children.(map[string]any); isMapping {
			one.err = errNilMapping
		}
		return visit(one)
	}
	// The order of the cases matters: Unstructured is a metav1.Object, too, but its raw form is needed.
	switch object := children.(type) {
	case map[string]any:
		return visit(item{child: child{raw: object, object: object}, path: path})
	case *unstructured.Unstructured:
		if object.Object == nil {
			object.Object = map[string]any{}
		}
		return visit(item{child: child{raw: object.Object, object: object}, path: path})
	case metav1.Object:
		return visit(item{child: child{typed: object, object: object}, path: path})
	case runtime.ApplyConfiguration:
		return visit(item{child: child{object: object}, path: path, err: noObjectError(reflect.TypeOf(object))})
	case runtime.Object:
		if meta.IsListType(object) {
			return walkList(object, path, visit)
		}
	}
	return walkElements(reflect.ValueOf(children), path, visit)
}

// walkList walks through the items of a Kubernetes list, and skips nil items.
func walkList(list runtime.Object, path []int, visit func(one item) bool) bool {
	// EachListItem only stops at an error, so errStopWalk marks a stop by visit.
	err := meta.EachListItem(list, func(object runtime.Object) error {
		if isNil(object) || walkItems(object, path, visit) {
			return nil
		}
		return errStopWalk
	})
	if errors.Is(err, errStopWalk) {
		return false
	}
	return err == nil || visit(item{path: path, err: err})
}

// walkElements walks through slices, arrays, pointers and iterators. It visits structs by their addresses, so that
// changes reach the caller's objects.
func walkElements(value reflect.Value, path []int, visit func(one item) bool) bool {
	// The last element of inner is the index at this level. The levels above share its array, but not its last element.
	switch inner := append(path, 0); {
	case value.Kind() == reflect.Slice || value.Kind() == reflect.Array:
		for i := range value.Len() {
			inner[len(path)] = i
			if !walkItems(pointerOrValue(value.Index(i)), inner, visit) {
				return false
			}
		}
		return true
	case value.Kind() == reflect.Func && value.Type().CanSeq():
		for element := range value.Seq() {
			if !walkItems(element.Interface(), inner, visit) {
				return false
			}
			inner[len(path)]++
		}
		return true
	// A pointer to a struct that is not an object is an error below.
	case value.Kind() == reflect.Pointer && value.Elem().Kind() != reflect.Struct:
		return walkItems(pointerOrValue(value.Elem()), path, visit)
	}
	return visit(item{path: path, err: noObjectError(value.Type())})
}

// noObjectError returns the error for a value that neither is an object nor contains objects.
func noObjectError(found reflect.Type) error {
	return fmt.Errorf("a %s is not an object, and does not contain objects: pass pointers to objects, mappings, "+
		"lists, slices or iterators of them", found)
}

// pointerOrValue returns a pointer to an addressable struct, and any other value as it is.
func pointerOrValue(value reflect.Value) any {
	if value.Kind() == reflect.Struct && value.CanAddr() {
		return value.Addr().Interface()
	}
	return value.Interface()
}

// isNil reports whether the value is nil. A nil slice is not: it is a list without items.
func isNil(given any) bool {
	switch value := reflect.ValueOf(given); value.Kind() {
	case reflect.Invalid:
		return true
	case reflect.Pointer, reflect.Map, reflect.Func:
		return value.IsNil()
	default:
		return false
	}
}
