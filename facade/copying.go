package facade

import (
	"reflect"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
)

// detached is a copy that shares nothing with the value that could be modified. What cannot be copied from outside, as
// it has state of its own behind unexported fields, is shared: such as clients and locks.
func detached[T any](value T) T {
	if flat(reflect.TypeFor[T]()) {
		return value
	}
	return duplicate(value)
}

func duplicate[T any](value T) T {
	copied, _ := new(copying).of(reflect.ValueOf(&value).Elem()).Interface().(T)
	return copied
}

// copying is the copying of one value. Those that have cycles have no end, but few have: only when there were many
// parts already, what was met before is looked for, and is the same copy then.
type copying struct {
	parts int
	met   map[reference]reflect.Value
}

// many is from how many parts on cycles are looked for.
const many = 1000

// reference is a pointer, a mapping or a list.
type reference struct {
	at     uintptr
	length int
	typ    reflect.Type
}

func (c *copying) of(v reflect.Value) reflect.Value {
	if flat(v.Type()) {
		return v
	}
	switch v.Kind() {
	case reflect.Interface:
		if v.IsNil() {
			return v
		}
		return assigned(v.Type(), c.of(v.Elem()))
	case reflect.Pointer, reflect.Map, reflect.Slice:
		if v.IsNil() {
			return v
		}
		return c.referred(v)
	case reflect.Array, reflect.Struct:
		copied := assigned(v.Type(), v)
		c.fill(copied, v)
		return copied
	default:
		return v
	}
}

func assigned(typ reflect.Type, v reflect.Value) reflect.Value {
	place := reflect.New(typ).Elem()
	place.Set(v)
	return place
}

func (c *copying) referred(v reflect.Value) reflect.Value {
	var copied reflect.Value
	switch elem := v.Type().Elem(); {
	case v.Kind() == reflect.Map:
		copied = reflect.MakeMapWithSize(v.Type(), v.Len())
	case v.Kind() == reflect.Slice:
		copied = reflect.MakeSlice(v.Type(), v.Len(), v.Len())
	case closed(elem) || elem == quantities:
		return selfCopied(v)
	default:
		copied = reflect.New(elem).Convert(v.Type())
	}
	if c.parts++; c.parts > many {
		ref := referenceTo(v)
		if known, ok := c.met[ref]; ok {
			return known
		}
		if c.met == nil {
			c.met = map[reference]reflect.Value{}
		}
		c.met[ref] = copied
	}
	c.follow(copied, v)
	return copied
}

// follow copies what is behind a pointer, a mapping or a list.
func (c *copying) follow(into, v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		into.Elem().Set(v.Elem())
		c.put(into.Elem(), v.Elem())
	case reflect.Map:
		for entries := v.MapRange(); entries.Next(); {
			into.SetMapIndex(entries.Key(), c.of(entries.Value()))
		}
	default:
		reflect.Copy(into, v)
		c.fill(into, v)
	}
}

func referenceTo(v reflect.Value) reference {
	ref := reference{at: v.Pointer(), typ: v.Type()}
	if v.Kind() == reflect.Slice {
		ref.length = v.Len()
	}
	return ref
}

// fill copies the parts of a struct or a list into the same places of another one, which has them already.
func (c *copying) fill(into, v reflect.Value) {
	switch {
	case v.Kind() != reflect.Struct:
		if flat(v.Type().Elem()) {
			return
		}
		for i := range v.Len() {
			c.put(into.Index(i), v.Index(i))
		}
	case v.Type() == quantities:
		into.Set(selfCopied(v))
	case closed(v.Type()):
	default:
		for i := range v.NumField() {
			if field := v.Field(i); !flat(field.Type()) {
				c.put(into.Field(i), field)
			}
		}
	}
}

// put copies a value into a place that has it already. Structs and arrays are copied in place.
func (c *copying) put(into, v reflect.Value) {
	if kind := v.Kind(); kind == reflect.Struct || kind == reflect.Array {
		c.fill(into, v)
		return
	}
	into.Set(c.of(v))
}

var (
	quantities = reflect.TypeFor[resource.Quantity]()
	moments    = reflect.TypeFor[time.Time]()
)

// selfCopied is for values that know how to copy themselves. Others are themselves.
func selfCopied(v reflect.Value) reflect.Value {
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

var flatTypes, closedTypes sync.Map

// flat tells whether an assignment is a copy.
func flat(typ reflect.Type) bool {
	return remembered(&flatTypes, typ, func() bool {
		switch typ.Kind() {
		case reflect.Interface, reflect.Pointer, reflect.Map, reflect.Slice:
			return false
		case reflect.Array:
			return flat(typ.Elem())
		case reflect.Struct:
			return typ == moments || !hasField(typ, func(field reflect.StructField) bool { return !flat(field.Type) })
		default:
			return true
		}
	})
}

// closed tells whether a struct has state of its own, which is not for others to copy.
func closed(typ reflect.Type) bool {
	return typ.Kind() == reflect.Struct && typ != moments && typ != quantities &&
		remembered(&closedTypes, typ, func() bool {
			return hasField(typ, func(field reflect.StructField) bool {
				return !field.IsExported() || closed(field.Type)
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

func remembered(known *sync.Map, typ reflect.Type, find func() bool) bool {
	if is, ok := known.Load(typ); ok {
		return is == true
	}
	is := find()
	known.Store(typ, is)
	return is
}

// separable tells whether all copies of a type are whole: nothing in it has state of its own.
func separable(typ reflect.Type, met map[reflect.Type]bool) bool {
	if met[typ] || typ == quantities {
		return true
	}
	met[typ] = true
	switch typ.Kind() {
	case reflect.Pointer, reflect.Map, reflect.Slice, reflect.Array:
		return separable(typ.Elem(), met)
	case reflect.Struct:
		return typ == moments || !closed(typ) &&
			!hasField(typ, func(field reflect.StructField) bool { return !separable(field.Type, met) })
	default:
		return true
	}
}
