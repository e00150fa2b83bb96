package codec

import (
	"reflect"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
)

// DeepCopy returns a copy that shares no modifiable state with the value. The exception are values with unexported
// fields, such as clients and locks, which are shared. Kubernetes objects and quantities copy
// themselves. Cycles are preserved. Common copy libraries clone unexported state with package unsafe, which is wrong
// for locks.
func DeepCopy[T any](value T) T {
	if isFlatType(reflect.TypeFor[T]()) {
		return value
	}
	copied, _ := copyDeep(value)
	return copied
}

// copyDeep also reports whether the copy is complete: it shares no values with unexported fields. It is a separate
// function because its argument escapes to the heap, which that of DeepCopy then need not.
func copyDeep[T any](value T) (copied T, isComplete bool) {
	c := &copier{}
	copied, _ = c.copyValue(reflect.ValueOf(&value).Elem()).Interface().(T)
	return copied, !c.hasShared
}

// copier copies one value. Few values contain cycles, so the copier remembers visited parts only after many of them.
// From then on, a visited part gets the same copy, which ends a cycle. Parts that are shared within a small value are
// copied several times, which is correct but not minimal.
type copier struct {
	hasShared bool // a value with unexported fields was not copied
	partCount int
	copies    map[reference]reflect.Value
}

// cycleThreshold is the number of copied parts after which the copier looks for cycles.
const cycleThreshold = 1000

// reference identifies a pointer, map or slice. The length is part of it, because slices of one array can start at the
// same address.
type reference struct {
	address uintptr
	length  int
	typ     reflect.Type
}

// referenceTo returns the key of a pointer, map or slice for the copies of a copier.
func referenceTo(v reflect.Value) reference {
	ref := reference{address: v.Pointer(), typ: v.Type()}
	if v.Kind() == reflect.Slice {
		ref.length = v.Len()
	}
	return ref
}

// copyValue returns a copy of any value. Flat values, functions and channels are returned as they are.
func (c *copier) copyValue(v reflect.Value) reflect.Value {
	if isFlatType(v.Type()) {
		return v
	}
	switch v.Kind() {
	case reflect.Interface:
		if v.IsNil() {
			return v
		}
		// The result must have the type of the interface, not that of its dynamic value.
		return newVariable(v.Type(), c.copyValue(v.Elem()))
	// A nil reference keeps its type and needs no copy.
	case reflect.Pointer, reflect.Map, reflect.Slice:
		if v.IsNil() {
			return v
		}
		return c.copyReference(v)
	case reflect.Array, reflect.Struct:
		copied := newVariable(v.Type(), v)
		c.copyParts(copied, v)
		return copied
	default:
		return v
	}
}

// newVariable returns an addressable variable of the type with this value. Only addressable values can be modified by
// package reflect.
func newVariable(typ reflect.Type, v reflect.Value) reflect.Value {
	place := reflect.New(typ).Elem()
	place.Set(v)
	return place
}

// copyReference copies a pointer, map or slice together with the values behind it.
func (c *copier) copyReference(v reflect.Value) reflect.Value {
	var copied reflect.Value
	switch elem := v.Type().Elem(); {
	case v.Kind() == reflect.Map:
		copied = reflect.MakeMapWithSize(v.Type(), v.Len())
	case v.Kind() == reflect.Slice:
		copied = reflect.MakeSlice(v.Type(), v.Len(), v.Len())
	// A pointer to such a struct is shared, unless the type has a deep copy of its own.
	case hasPrivateState(elem) || elem == quantityType:
		c.hasShared = c.hasShared || elem != quantityType
		return copyItself(v)
	default:
		// Convert handles named pointer types.
		copied = reflect.New(elem).Convert(v.Type())
	}
	// Lookups are slow compared to copies, so they begin late. A cycle passes the threshold quickly.
	if c.partCount++; c.partCount > cycleThreshold {
		ref := referenceTo(v)
		if known, ok := c.copies[ref]; ok {
			return known
		}
		if c.copies == nil {
			c.copies = map[reference]reflect.Value{}
		}
		// The copy is registered before its content is copied, so that a cycle finds it.
		c.copies[ref] = copied
	}
	c.copyReferenced(copied, v)
	return copied
}

// copyReferenced copies the values behind a pointer, map or slice into its copy.
func (c *copier) copyReferenced(into, v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		// The assignment copies flat parts and unexported fields; the others are replaced below.
		into.Elem().Set(v.Elem())
		c.copyInto(into.Elem(), v.Elem())
	case reflect.Map:
		// Keys are not copied: the new map must have the same keys.
		for entries := v.MapRange(); entries.Next(); {
			into.SetMapIndex(entries.Key(), c.copyValue(entries.Value()))
		}
	default:
		reflect.Copy(into, v)
		c.copyParts(into, v)
	}
}

// copyParts replaces the parts of a struct, array or slice by copies. The target has the original parts already.
func (c *copier) copyParts(into, v reflect.Value) {
	switch {
	case v.Kind() != reflect.Struct:
		if isFlatType(v.Type().Elem()) {
			return
		}
		for i := range v.Len() {
			c.copyInto(into.Index(i), v.Index(i))
		}
	// A quantity has unexported fields with pointers, which only its own method copies.
	case v.Type() == quantityType:
		into.Set(copyItself(v))
	// The shallow copy in the target is kept.
	case hasPrivateState(v.Type()):
		c.hasShared = true
	default:
		for i := range v.NumField() {
			// The target has copies of flat fields already.
			if field := v.Field(i); !isFlatType(field.Type()) {
				c.copyInto(into.Field(i), field)
			}
		}
	}
}

// copyInto replaces a value in its place by a copy. Structs and arrays are handled in place, which avoids an
// allocation.
func (c *copier) copyInto(into, v reflect.Value) {
	if kind := v.Kind(); kind == reflect.Struct || kind == reflect.Array {
		c.copyParts(into, v)
		return
	}
	into.Set(c.copyValue(v))
}

// copyItself returns the value's own deep copy, or the value itself if it cannot copy itself to the same type.
func copyItself(v reflect.Value) reflect.Value {
	switch value := v.Interface().(type) {
	case resource.Quantity:
		return reflect.ValueOf(value.DeepCopy())
	case *resource.Quantity:
		return reflect.ValueOf(ptr.To(value.DeepCopy()))
	// Some wrong implementations return nil or another type.
	case runtime.Object:
		if copied := reflect.ValueOf(value.DeepCopyObject()); copied.IsValid() && copied.Type() == v.Type() {
			return copied
		}
	}
	return v
}

var (
	quantityType = reflect.TypeFor[resource.Quantity]()
	timeType     = reflect.TypeFor[time.Time]()
)

// The caches of [isFlatType] and [hasPrivateState]. Reflection on each copy would be slow.
var flatTypes, privateTypes sync.Map

// isFlatType reports whether an assignment copies the value completely: the type has no pointers, maps, slices or
// interfaces. Time values count as flat because they are immutable.
func isFlatType(typ reflect.Type) bool {
	return cachedProperty(&flatTypes, typ, func() bool {
		switch typ.Kind() {
		// An assignment copies only the reference.
		case reflect.Interface, reflect.Pointer, reflect.Map, reflect.Slice:
			return false
		case reflect.Array:
			return isFlatType(typ.Elem())
		case reflect.Struct:
			return typ == timeType ||
				!hasField(typ, func(field reflect.StructField) bool { return !isFlatType(field.Type) })
		default:
			return true
		}
	})
}

// hasPrivateState reports whether a struct has unexported fields, which only its own package can copy. Time values and
// quantities are exceptions.
func hasPrivateState(typ reflect.Type) bool {
	return typ.Kind() == reflect.Struct && typ != timeType && typ != quantityType &&
		cachedProperty(&privateTypes, typ, func() bool {
			return hasField(typ, func(field reflect.StructField) bool {
				// Structs within structs count as well: a copy includes them.
				return !field.IsExported() || hasPrivateState(field.Type)
			})
		})
}

// hasField reports whether any field of a struct satisfies the function.
func hasField(typ reflect.Type, is func(reflect.StructField) bool) bool {
	for i := range typ.NumField() {
		if is(typ.Field(i)) {
			return true
		}
	}
	return false
}

// cachedProperty returns a stored property of a type, and computes it first if necessary. The number of entries is
// limited by the number of types of the program, so entries are never removed.
func cachedProperty(known *sync.Map, typ reflect.Type, find func() bool) bool {
	if is, ok := known.Load(typ); ok {
		return is == true
	}
	// Two goroutines may compute the same entry; both results are equal.
	is := find()
	known.Store(typ, is)
	return is
}
