package hierarchies

import (
	"errors"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// child is one object: either a mapping, whose fields can be absent, null or empty, or a typed one.
type child struct {
	raw   map[string]any
	typed metav1.Object
	whole any // of which typed is the metadata
}

// metadata gives that of a mapping, which is made if there is none.
func (c child) metadata() (map[string]any, error) {
	switch metadata := c.raw["metadata"].(type) {
	case map[string]any:
		return metadata, nil
	case nil:
		made := map[string]any{}
		c.raw["metadata"] = made
		return made, nil
	default:
		return nil, fmt.Errorf("its metadata is a %T, not a mapping", metadata)
	}
}

var errNilMapping = errors.New("the mapping is nil, so nothing can be set in it")

// each calls the function for every object among the children.
func each(children any, act func(c child) error) error {
	switch one := children.(type) {
	case nil:
		return nil
	case map[string]any:
		if one == nil {
			return errNilMapping
		}
		return act(child{raw: one, whole: one})
	case *unstructured.Unstructured:
		if one == nil {
			return nil
		}
		if one.Object == nil {
			one.Object = map[string]any{}
		}
		return act(child{raw: one.Object, whole: one})
	}
	value := reflect.ValueOf(children)
	if value.Kind() == reflect.Pointer && value.IsNil() {
		return nil
	}
	if object, ok := children.(metav1.Object); ok {
		return act(child{typed: object, whole: children})
	}
	if list, ok := children.(runtime.Object); ok && meta.IsListType(list) {
		return meta.EachListItem(list, func(item runtime.Object) error { return each(item, act) })
	}
	return eachElement(value, act)
}

// eachElement goes through what has elements. Objects in slices and arrays are taken by their addresses.
func eachElement(value reflect.Value, act func(c child) error) error {
	switch value.Kind() {
	case reflect.Slice, reflect.Array:
		for i := range value.Len() {
			if err := each(addressed(value.Index(i)), act); err != nil {
				return fmt.Errorf("item %d: %w", i, err)
			}
		}
		return nil
	case reflect.Pointer:
		if value.Elem().Kind() != reflect.Struct { // its address is what we have
			return each(addressed(value.Elem()), act)
		}
	case reflect.Func:
		if value.Type().CanSeq() {
			return eachYielded(value, act)
		}
	}
	return fmt.Errorf("a %s is not an object, and does not contain objects: pass pointers to objects, mappings, "+
		"lists, slices or iterators of them", value.Type())
}

// eachYielded goes through an iterator.
func eachYielded(value reflect.Value, act func(c child) error) error {
	i := 0
	for item := range value.Seq() {
		if err := each(item.Interface(), act); err != nil {
			return fmt.Errorf("item %d: %w", i, err)
		}
		i++
	}
	return nil
}

// addressed gives a struct as the pointer to it, as objects are.
func addressed(value reflect.Value) any {
	if value.Kind() == reflect.Struct && value.CanAddr() {
		return value.Addr().Interface()
	}
	return value.Interface()
}
