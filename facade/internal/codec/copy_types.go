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

// Complete tells whether all copies of a type are complete: nothing in it has state of its own, which is not for others
// to copy.
func Complete(typ reflect.Type) bool { return isComplete(typ, map[reflect.Type]bool{}) }

func isComplete(typ reflect.Type, met map[reflect.Type]bool) bool {
	if met[typ] || typ == quantityType {
		return true
	}
	met[typ] = true
	switch typ.Kind() {
	case reflect.Pointer, reflect.Map, reflect.Slice, reflect.Array:
		return isComplete(typ.Elem(), met)
	case reflect.Struct:
		return typ == timeType || !hasPrivateState(typ) &&
			!hasField(typ, func(field reflect.StructField) bool { return !isComplete(field.Type, met) })
	default:
		return true
	}
}

var flatTypes, privateTypes sync.Map

// isFlat tells whether an assignment is a copy.
func isFlat(typ reflect.Type) bool {
	return cached(&flatTypes, typ, func() bool {
		switch typ.Kind() {
		case reflect.Interface, reflect.Pointer, reflect.Map, reflect.Slice:
			return false
		case reflect.Array:
			return isFlat(typ.Elem())
		case reflect.Struct:
			return typ == timeType ||
				!hasField(typ, func(field reflect.StructField) bool { return !isFlat(field.Type) })
		default:
			return true
		}
	})
}

// hasPrivateState tells whether a struct has unexported fields: only its own package can copy it.
func hasPrivateState(typ reflect.Type) bool {
	return typ.Kind() == reflect.Struct && typ != timeType && typ != quantityType &&
		cached(&privateTypes, typ, func() bool {
			return hasField(typ, func(field reflect.StructField) bool {
				return !field.IsExported() || hasPrivateState(field.Type)
			})
		})
}

func hasField(typ reflect.Type, is func(reflect.StructField) bool) bool {
	for i := range typ.NumField() {
		if is(typ.Field(i)) {
			return true
		}
	}
	return false
}

// cached answers a question about a type from memory, after the first time. There are as many answers as the program
// has types, so nothing has to be forgotten.
func cached(known *sync.Map, typ reflect.Type, find func() bool) bool {
	if is, ok := known.Load(typ); ok {
		return is == true
	}
	is := find()
	known.Store(typ, is)
	return is
}
