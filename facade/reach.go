package facade

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

// reach tells whether the type has a place for the field. Values that encode themselves, and those of any type, may
// have anything in them; whole paths of objects without a Go type, too.
func (f *form[T]) reach(field diff.Path) []error {
	typ := f.typ
	for i, key := range field {
		for typ.Kind() == reflect.Pointer {
			typ = typ.Elem()
		}
		switch {
		case opaque(typ):
			return nil
		case typ.Kind() == reflect.Map:
			typ = typ.Elem()
			continue
		case typ.Kind() != reflect.Struct:
			return []error{
				fmt.Errorf(
					"field %q: %s has no keys: it is a %s; lists are compared as a whole", field,
					strings.Join(field[:i], "."), typ,
				),
			}
		}
		next, ok := member(typ, key)
		if !ok {
			return []error{fmt.Errorf("field %q: %s has no %q", field, f.typ, strings.Join(field[:i+1], "."))}
		}
		typ = next
	}
	return nil
}

var marshaler = reflect.TypeFor[json.Marshaler]()

// opaque is true for types whose JSON is not that of their fields.
func opaque(typ reflect.Type) bool {
	return typ.Kind() == reflect.Interface || typ.Implements(marshaler) || reflect.PointerTo(typ).Implements(marshaler)
}

// member is the type of a field by its name in JSON, also that of an embedded struct.
func member(typ reflect.Type, key string) (reflect.Type, bool) {
	for i := range typ.NumField() {
		field := typ.Field(i)
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case name == "-" || !field.IsExported() && !field.Anonymous:
		case field.Anonymous && name == "" || strings.Contains(options, "inline"):
			inner := field.Type
			if inner.Kind() == reflect.Pointer {
				inner = inner.Elem()
			}
			if inner.Kind() == reflect.Struct {
				if found, ok := member(inner, key); ok {
					return found, true
				}
			}
		case name == key || name == "" && field.Name == key:
			return field.Type, true
		}
	}
	return nil, false
}
