package codec

import (
	"reflect"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
)

// DeepCopy returns a copy that shares nothing with the value that could be modified, except for values with unexported
// fields, such as clients and locks: these are shared, see [Complete]. Kubernetes objects and quantities copy
// themselves, and cycles end. Libraries for copies clone unexported state with package unsafe.
func DeepCopy[T any](value T) T {
	if isFlat(reflect.TypeFor[T]()) {
		return value
	}
	return copyDeep(value)
}

// copyDeep is a function of its own because its argument moves to the heap, which that of DeepCopy need not.
func copyDeep[T any](value T) T {
	copied, _ := new(copier).copy(reflect.ValueOf(&value).Elem()).Interface().(T)
	return copied
}

// copier copies one value. A value with cycles would have no end, but few values have them: the copier looks for what
// it has met before only when it has met many parts already, and uses the same copy then.
type copier struct {
	parts  int
	copies map[reference]reflect.Value
}

// cycleThreshold is from how many parts on the copier looks for cycles.
const cycleThreshold = 1000

// reference identifies a pointer, a mapping or a list.
type reference struct {
	at     uintptr
	length int
	typ    reflect.Type
}

func referenceTo(v reflect.Value) reference {
	ref := reference{at: v.Pointer(), typ: v.Type()}
	if v.Kind() == reflect.Slice {
		ref.length = v.Len()
	}
	return ref
}

func (c *copier) copy(v reflect.Value) reflect.Value {
	if isFlat(v.Type()) {
		return v
	}
	switch v.Kind() {
	case reflect.Interface:
		if v.IsNil() {
			return v
		}
		return variable(v.Type(), c.copy(v.Elem()))
	case reflect.Pointer, reflect.Map, reflect.Slice:
		if v.IsNil() {
			return v
		}
		return c.copyReference(v)
	case reflect.Array, reflect.Struct:
		copied := variable(v.Type(), v)
		c.copyParts(copied, v)
		return copied
	default:
		return v
	}
}

// variable makes a variable of a type, which can be modified, and gives it a value.
func variable(typ reflect.Type, v reflect.Value) reflect.Value {
	place := reflect.New(typ).Elem()
	place.Set(v)
	return place
}

// copyReference copies a pointer, a mapping or a list with what is behind it.
func (c *copier) copyReference(v reflect.Value) reflect.Value {
	var copied reflect.Value
	switch elem := v.Type().Elem(); {
	case v.Kind() == reflect.Map:
		copied = reflect.MakeMapWithSize(v.Type(), v.Len())
	case v.Kind() == reflect.Slice:
		copied = reflect.MakeSlice(v.Type(), v.Len(), v.Len())
	case hasPrivateState(elem) || elem == quantityType:
		return copyItself(v)
	default:
		copied = reflect.New(elem).Convert(v.Type())
	}
	if c.parts++; c.parts > cycleThreshold {
		ref := referenceTo(v)
		if known, ok := c.copies[ref]; ok {
			return known
		}
		if c.copies == nil {
			c.copies = map[reference]reflect.Value{}
		}
		c.copies[ref] = copied
	}
	c.copyReferenced(copied, v)
	return copied
}

// copyReferenced copies what is behind a pointer, a mapping or a list to what is behind another one.
func (c *copier) copyReferenced(into, v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		into.Elem().Set(v.Elem())
		c.copyInto(into.Elem(), v.Elem())
	case reflect.Map:
		for entries := v.MapRange(); entries.Next(); {
			into.SetMapIndex(entries.Key(), c.copy(entries.Value()))
		}
	default:
		reflect.Copy(into, v)
		c.copyParts(into, v)
	}
}

// copyParts copies the parts of a struct or a list into the same places of another one, which has them already.
func (c *copier) copyParts(into, v reflect.Value) {
	switch {
	case v.Kind() != reflect.Struct:
		if isFlat(v.Type().Elem()) {
			return
		}
		for i := range v.Len() {
			c.copyInto(into.Index(i), v.Index(i))
		}
	case v.Type() == quantityType:
		into.Set(copyItself(v))
	case hasPrivateState(v.Type()):
	default:
		for i := range v.NumField() {
			if field := v.Field(i); !isFlat(field.Type()) {
				c.copyInto(into.Field(i), field)
			}
		}
	}
}

// copyInto copies a value into a place that has it already. It copies structs and arrays in place.
func (c *copier) copyInto(into, v reflect.Value) {
	if kind := v.Kind(); kind == reflect.Struct || kind == reflect.Array {
		c.copyParts(into, v)
		return
	}
	into.Set(c.copy(v))
}

// copyItself has a value copy itself if it can, and gives the value itself otherwise.
func copyItself(v reflect.Value) reflect.Value {
	switch value := v.Interface().(type) {
	case resource.Quantity:
		return reflect.ValueOf(value.DeepCopy())
	case *resource.Quantity:
		return reflect.ValueOf(ptr.To(value.DeepCopy()))
	case runtime.Object:
		if copied := reflect.ValueOf(value.DeepCopyObject()); copied.IsValid() && copied.Type() == v.Type() {
			return copied
		}
	}
	return v
}
