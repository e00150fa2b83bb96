package codec

import (
	"reflect"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
)

var (
	quantityType = reflect.TypeFor[resource.Quantity]()
	timeType     = reflect.TypeFor[time.Time]()
)

// IsCompletelyCopied reports whether DeepCopy copies values of the type completely: the type has no part with unexported state.
func IsCompletelyCopied(typ reflect.Type) bool { return isComplete(typ, map[reflect.Type]bool{}) }

// isComplete skips the types in met: a recursive type refers to itself.
func isComplete(typ reflect.Type, met map[reflect.Type]bool) bool {
	// A type that is being examined counts as complete, so that the recursion ends.
	if met[typ] || typ == quantityType {
		return true
	}
	met[typ] = true
	switch typ.Kind() {
	// Interfaces count as complete: the type of their values is not known here.
	case reflect.Pointer, reflect.Map, reflect.Slice, reflect.Array:
		return isComplete(typ.Elem(), met)
	case reflect.Struct:
		return typ == timeType || !hasPrivateState(typ) &&
			!hasField(typ, func(field reflect.StructField) bool { return !isComplete(field.Type, met) })
	default:
		return true
	}
}

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

// cachedProperty returns a stored property of a type, and computes it first if necessary. The number of entries is limited by
// the number of types of the program, so entries are never removed.
func cachedProperty(known *sync.Map, typ reflect.Type, find func() bool) bool {
	if is, ok := known.Load(typ); ok {
		return is == true
	}
	// Two goroutines may compute the same entry; both results are equal.
	is := find()
	known.Store(typ, is)
	return is
}
