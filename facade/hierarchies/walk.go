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
	errEnough     = errors.New("enough") // ends the iteration over a list
)

// item is one step of a walk through children: an object, nil, or an error.
type item struct {
	child       // only its whole is set for an apply configuration, which is an error as well
	path  []int // the indices in nested slices and iterators; it is valid until the next step
	isNil bool
	err   error
}

// Objects returns each object among the children, as it is: a typed one, an unstructured one or a mapping. Unlike for
// other functions of this package, what client-go calls apply configurations are objects, too, and nil is one: it is
// returned as nil, whatever its type. Anything else is returned as an error, and the next ones follow.
func Objects(children any) iter.Seq2[any, error] {
	return func(yield func(any, error) bool) {
		walkItems(children, nil, func(one item) bool {
			if _, isDeclared := one.whole.(runtime.ApplyConfiguration); isDeclared || one.isNil {
				one.err = nil
			}
			return yield(one.whole, one.err)
		})
	}
}

// walkItems calls the function for each item among the children, and returns false as soon as the function does.
func walkItems(children any, path []int, visit func(one item) bool) bool {
	if isNil(children) {
		one := item{path: path, isNil: true}
		if _, isMapping := children.(map[string]any); isMapping {
			one.err = errNilMapping
		}
		return visit(one)
	}
	switch object := children.(type) {
	case map[string]any:
		return visit(item{child: child{raw: object, whole: object}, path: path})
	case *unstructured.Unstructured:
		if object.Object == nil {
			object.Object = map[string]any{}
		}
		return visit(item{child: child{raw: object.Object, whole: object}, path: path})
	case metav1.Object:
		return visit(item{child: child{typed: object, whole: object}, path: path})
	case runtime.ApplyConfiguration:
		return visit(item{child: child{whole: object}, path: path, err: noObjectError(reflect.TypeOf(object))})
	case runtime.Object:
		if meta.IsListType(object) {
			return walkList(object, path, visit)
		}
	}
	return walkElements(reflect.ValueOf(children), path, visit)
}

// walkList walks through a list of the API. Its nil items are skipped.
func walkList(list runtime.Object, path []int, visit func(one item) bool) bool {
	err := meta.EachListItem(list, func(object runtime.Object) error {
		if isNil(object) || walkItems(object, path, visit) {
			return nil
		}
		return errEnough
	})
	if errors.Is(err, errEnough) {
		return false
	}
	return err == nil || visit(item{path: path, err: err})
}

// walkElements walks through slices, arrays, pointers and iterators. Objects in them are taken by their addresses.
func walkElements(value reflect.Value, path []int, visit func(one item) bool) bool {
	switch inner := append(path, 0); {
	case value.Kind() == reflect.Slice || value.Kind() == reflect.Array:
		for i := range value.Len() {
			inner[len(path)] = i
			if !walkItems(addressed(value.Index(i)), inner, visit) {
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
	case value.Kind() == reflect.Pointer && value.Elem().Kind() != reflect.Struct:
		return walkItems(addressed(value.Elem()), path, visit)
	}
	return visit(item{path: path, err: noObjectError(value.Type())})
}

func noObjectError(found reflect.Type) error {
	return fmt.Errorf("a %s is not an object, and does not contain objects: pass pointers to objects, mappings, "+
		"lists, slices or iterators of them", found)
}

// addressed gives a struct as the pointer to it, as objects are.
func addressed(value reflect.Value) any {
	if value.Kind() == reflect.Struct && value.CanAddr() {
		return value.Addr().Interface()
	}
	return value.Interface()
}

// isNil is true if there is nothing. A slice without items is something.
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
