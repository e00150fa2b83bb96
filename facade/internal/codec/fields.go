package codec

import (
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/panics"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

// CheckField tells whether T can have the field; nil if it can. Values that encode themselves, and those of interface
// types, may have anything in them; so may objects without a Go type.
func (c *Codec[T]) CheckField(field diff.Path) error {
	_, err := c.walk(field, false)
	return err
}

// CheckPart is CheckField for a path that may lead through lists: these are meant as a whole then.
func (c *Codec[T]) CheckPart(field diff.Path) error {
	_, err := c.walk(field, true)
	return err
}

// CheckValue tells whether the field can have a value, which is in its JSON form; nil if it can, and if T does not have
// the field.
func (c *Codec[T]) CheckValue(field diff.Path, value any) error {
	typ, err := c.walk(field, false)
	if err != nil || typ == nil || encodesItself(typ) && !decodesItself(typ) {
		return nil
	}
	err = panics.Contain(func() error { return DecodeValue(value, reflect.New(typ).Interface()) })
	if err != nil {
		return fmt.Errorf("field %s of %s never has this value: %w", FormatPath(field), c.typ, err)
	}
	return nil
}

// walk gives the type of a field; nil if it may be anything.
func (c *Codec[T]) walk(field diff.Path, throughLists bool) (reflect.Type, error) {
	typ, mapping := c.typ, -1 // where a key of a mapping stood last
	for i, key := range field {
		for typ.Kind() == reflect.Pointer {
			typ = typ.Elem()
		}
		list := isList(typ)
		switch {
		case encodesItself(typ), list && throughLists:
			return nil, nil
		case typ.Kind() == reflect.Map:
			typ, mapping = typ.Elem(), i
			continue
		case typ.Kind() != reflect.Struct:
			return nil, noKeys(field, i, mapping, typ, list)
		}
		next, ok := fieldType(typ, key)
		if !ok {
			return nil, c.unknown(field, i, typ)
		}
		typ = next
	}
	return typ, nil
}

// isList is false for bytes, too, which are a text in JSON.
func isList(typ reflect.Type) bool {
	return typ.Kind() == reflect.Array || typ.Kind() == reflect.Slice && typ.Elem().Kind() != reflect.Uint8
}

// noKeys says that the value before the key at the place has no keys.
func noKeys(field diff.Path, at, mapping int, typ reflect.Type, list bool) error {
	holder := FormatPath(field[:at])
	switch {
	case list:
		return fmt.Errorf(
			"field %s: %s has no keys: its type is %s; lists are compared as a whole, so end the path there",
			FormatPath(field), holder, typ,
		)
	case mapping >= 0 && at == mapping+1:
		return fmt.Errorf("field %s: %s has no keys: its type is %s; %w",
			FormatPath(field), holder, typ, quoteKey(field, mapping))
	default:
		return fmt.Errorf(
			"field %s: %s has no keys: its type is %s; end the path there", FormatPath(field), holder, typ,
		)
	}
}

// unknown says that the struct has no such key, and which one could be meant.
func (c *Codec[T]) unknown(field diff.Path, at int, typ reflect.Type) error {
	err := fmt.Errorf("field %s: %s has no %q", FormatPath(field), c.typ, FormatPath(field[:at+1]))
	if meant := nearest(field[at], fieldNames(typ)); meant != "" {
		guess := append(append(diff.Path{}, field[:at]...), meant)
		return fmt.Errorf("%w: did you mean %s?", err, FormatPath(append(guess, field[at+1:]...)))
	}
	return err
}

var (
	marshalerType   = reflect.TypeFor[json.Marshaler]()
	unmarshalerType = reflect.TypeFor[json.Unmarshaler]()
)

// encodesItself is true for types whose JSON is not that of their fields.
func encodesItself(typ reflect.Type) bool {
	return typ.Kind() == reflect.Interface || typ.Implements(marshalerType) ||
		reflect.PointerTo(typ).Implements(marshalerType)
}

// decodesItself is true for types that say what JSON they take.
func decodesItself(typ reflect.Type) bool {
	return typ.Implements(unmarshalerType) || reflect.PointerTo(typ).Implements(unmarshalerType)
}

// fieldType gives the type of a field by its name in JSON, also of a field of an embedded struct; of one that is
// encoded as a string, it is that of anything.
func fieldType(typ reflect.Type, key string) (reflect.Type, bool) {
	field, ok := structField(typ, key)
	if ok && strings.Contains(field.Tag.Get("json"), ",string") {
		return reflect.TypeFor[any](), true
	}
	return field.Type, ok
}

// structField gives the field with a name in JSON, also that of an embedded struct.
func structField(typ reflect.Type, key string) (found reflect.StructField, ok bool) {
	eachField(typ, func(name string, field reflect.StructField) bool {
		if ok = name == key; ok {
			found = field
		}
		return !ok
	})
	return found, ok
}

// fieldNames are the names of all fields in JSON.
func fieldNames(typ reflect.Type) (names []string) {
	eachField(typ, func(name string, _ reflect.StructField) bool {
		names = append(names, name)
		return true
	})
	return names
}

// eachField visits the fields of a struct, then those of the structs that are embedded in it, whose names it may hide,
// until a visit says false. An embedded type that is no struct is a field by the name of the type; so is an inline
// struct that is not embedded.
func eachField(typ reflect.Type, visit func(name string, field reflect.StructField) bool) bool {
	var embedded []reflect.Type
	for i := range typ.NumField() {
		field := typ.Field(i)
		tag := field.Tag.Get("json")
		name, _, _ := strings.Cut(tag, ",")
		inner := field.Type
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		part := field.Anonymous && inner.Kind() == reflect.Struct
		switch {
		case tag == "-" || !field.IsExported() && !part:
		case part && name == "":
			embedded = append(embedded, inner)
		case !visit(cmp.Or(name, field.Name), field):
			return false
		}
	}
	return !slices.ContainsFunc(embedded, func(inner reflect.Type) bool { return !eachField(inner, visit) })
}
