package codec

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

var (
	errEmptyKey = errors.New("a key is empty")
	errQuote    = errors.New(`a key in double quotes does not end before a dot, as in metadata.annotations."a.b/c"`)
)

// ParsePath splits a path such as `metadata.labels."a.b/c"` at its dots, but not inside of double quotes.
func ParsePath(text string) (diff.Path, error) {
	var path diff.Path
	for rest, more := text, true; more; {
		var key string
		if quoted, ok := strings.CutPrefix(rest, `"`); ok {
			var closed bool
			key, rest, closed = strings.Cut(quoted, `"`)
			if !closed || rest != "" && rest[0] != '.' {
				return nil, fmt.Errorf("invalid path %q: %w", text, errQuote)
			}
			rest, more = strings.CutPrefix(rest, ".")
		} else {
			key, rest, more = strings.Cut(rest, ".")
			if strings.Contains(key, `"`) {
				return nil, fmt.Errorf("invalid path %q: %w", text, errQuote)
			}
		}
		if key == "" {
			return nil, fmt.Errorf("invalid path %q: %w", text, errEmptyKey)
		}
		path = append(path, key)
	}
	return path, nil
}

// CheckField tells whether T can have the field; nil if it can. Values that encode themselves, and those of interface
// types, may have anything in them; so may objects without a Go type.
func (c *Codec[T]) CheckField(field diff.Path) error {
	typ := c.typ
	for i, key := range field {
		for typ.Kind() == reflect.Pointer {
			typ = typ.Elem()
		}
		switch {
		case encodesItself(typ):
			return nil
		case typ.Kind() == reflect.Map:
			typ = typ.Elem()
			continue
		case typ.Kind() != reflect.Struct:
			return fmt.Errorf(
				"field %q: %s has no keys: it is a %s; lists are compared as a whole", field,
				strings.Join(field[:i], "."), typ,
			)
		}
		next, ok := fieldType(typ, key)
		if !ok {
			return fmt.Errorf("field %q: %s has no %q", field, c.typ, strings.Join(field[:i+1], "."))
		}
		typ = next
	}
	return nil
}

var marshalerType = reflect.TypeFor[json.Marshaler]()

// encodesItself is true for types whose JSON is not that of their fields.
func encodesItself(typ reflect.Type) bool {
	return typ.Kind() == reflect.Interface || typ.Implements(marshalerType) ||
		reflect.PointerTo(typ).Implements(marshalerType)
}

// fieldType gives the type of a field by its name in JSON, also of a field of an embedded struct.
func fieldType(typ reflect.Type, key string) (reflect.Type, bool) {
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
				if found, ok := fieldType(inner, key); ok {
					return found, true
				}
			}
		case name == key || name == "" && field.Name == key:
			return field.Type, true
		}
	}
	return nil, false
}
