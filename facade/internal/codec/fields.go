package codec

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/kopf-runtime/kopf-runtime/internal/panics"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

// CheckField returns an error if T cannot have the field. Values with their own encoding, and values of interface
// types, can contain any field. So can objects without a Go type.
func (c *Codec[T]) CheckField(field diff.Path) error {
	_, err := c.typeAtPath(field, false)
	return err
}

// CheckPart is CheckField for a path that may lead through lists. Then it refers to the items.
func (c *Codec[T]) CheckPart(field diff.Path) error {
	_, err := c.typeAtPath(field, true)
	return err
}

// CheckValue returns an error if the field can never have the value, which is in JSON form. A field that T does not
// have is not an error here: CheckField reports it.
func (c *Codec[T]) CheckValue(field diff.Path, value any) error {
	typ, err := c.typeAtPath(field, false)
	// A type that encodes itself without decoding itself does not accept its own JSON, so the value cannot be checked.
	if err != nil || typ == nil || encodesItself(typ) && !decodesItself(typ) {
		return nil
	}
	// The decoder of the type can be a user's function.
	err = panics.Contain(func() error { return DecodeValue(value, reflect.New(typ).Interface()) })
	if err != nil {
		return fmt.Errorf("field %s of %s never has this value: %w", FormatPath(field), c.typ, err)
	}
	return nil
}

// typeAtPath returns the Go type of a field; nil if the field can have any type.
func (c *Codec[T]) typeAtPath(field diff.Path, throughLists bool) (reflect.Type, error) {
	typ, mapping := c.typ, -1 // mapping is the index of the last key of a map
	for i, key := range field {
		// Pointers are transparent in JSON.
		for typ.Kind() == reflect.Pointer {
			typ = typ.Elem()
		}
		list := isList(typ)
		switch {
		// Everything below this value is unknown.
		case encodesItself(typ), list && throughLists:
			return nil, nil
		// A map can have any key.
		case typ.Kind() == reflect.Map:
			typ, mapping = typ.Elem(), i
			continue
		case typ.Kind() != reflect.Struct:
			return nil, noKeysError(field, i, mapping, typ, list)
		}
		next, ok := fieldType(typ, key)
		if !ok {
			return nil, c.unknownFieldError(field, i, typ)
		}
		typ = next
	}
	return typ, nil
}

// isList reports whether the type is a list in JSON. Byte slices are not: they are encoded as text.
func isList(typ reflect.Type) bool {
	return typ.Kind() == reflect.Array || typ.Kind() == reflect.Slice && typ.Elem().Kind() != reflect.Uint8
}

// noKeysError returns the error for a path that continues after a value without fields. The remedy depends on the type:
// a key of a map that contains dots is a frequent mistake.
func noKeysError(field diff.Path, at, mapping int, typ reflect.Type, list bool) error {
	remedy := errors.New("end the path there")
	switch {
	case list:
		remedy = errors.New("lists are compared as a whole, so end the path there")
	// The path continues directly after a key of a map, so that key was probably cut at its dots.
	case mapping >= 0 && at == mapping+1:
		remedy = suggestQuotedKey(field, mapping)
	}
	// The error names the value that has no keys, not only the whole path.
	return fmt.Errorf("field %s: %s has no keys: its type is %s; %w",
		FormatPath(field), FormatPath(field[:at]), typ, remedy)
}

// unknownFieldError returns the error for a field that the struct does not have, with a suggestion if one is similar.
func (c *Codec[T]) unknownFieldError(field diff.Path, at int, typ reflect.Type) error {
	err := fmt.Errorf("field %s: %s has no %q", FormatPath(field), c.typ, FormatPath(field[:at+1]))
	if meant := nearestName(field[at], fieldNames(typ)); meant != "" {
		// The suggestion is the whole path, ready to be pasted.
		guess := append(append(diff.Path{}, field[:at]...), meant)
		return fmt.Errorf("%w: did you mean %s?", err, FormatPath(append(guess, field[at+1:]...)))
	}
	return err
}

var (
	marshalerType   = reflect.TypeFor[json.Marshaler]()
	unmarshalerType = reflect.TypeFor[json.Unmarshaler]()
)

// encodesItself reports whether the JSON of the type can differ from its fields.
func encodesItself(typ reflect.Type) bool {
	return typ.Kind() == reflect.Interface || typ.Implements(marshalerType) ||
		reflect.PointerTo(typ).Implements(marshalerType)
}

// decodesItself reports whether the type decodes JSON on its own.
func decodesItself(typ reflect.Type) bool {
	return typ.Implements(unmarshalerType) || reflect.PointerTo(typ).Implements(unmarshalerType)
}

// fieldType returns the type of a field by its JSON name, including fields of embedded structs. A field with the option
// "string" is encoded as text, so its type is any.
func fieldType(typ reflect.Type, key string) (reflect.Type, bool) {
	field, ok := structField(typ, key)
	if ok && strings.Contains(field.Tag.Get("json"), ",string") {
		return reflect.TypeFor[any](), true
	}
	return field.Type, ok
}

// structField returns a field by its JSON name, including fields of embedded structs.
func structField(typ reflect.Type, key string) (found reflect.StructField, ok bool) {
	eachField(typ, func(name string, field reflect.StructField) bool {
		if ok = name == key; ok {
			found = field
		}
		return !ok
	})
	return found, ok
}

// fieldNames returns the JSON names of all fields.
func fieldNames(typ reflect.Type) (names []string) {
	eachField(typ, func(name string, _ reflect.StructField) bool {
		names = append(names, name)
		return true
	})
	return names
}

// eachField visits the fields of a struct, then those of its embedded structs, until a visit returns false. This order
// gives outer fields precedence, as in encoding/json. An embedded type that is not a struct is a field with the name of
// its type. A struct field with the option "inline" that is not embedded is a normal field.
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
		// An unexported embedded struct still contributes its exported fields.
		part := field.Anonymous && inner.Kind() == reflect.Struct
		switch {
		// Encoding/json ignores these fields.
		case tag == "-" || !field.IsExported() && !part:
		case part && name == "":
			embedded = append(embedded, inner)
		case !visit(cmp.Or(name, field.Name), field):
			return false
		}
	}
	return !slices.ContainsFunc(embedded, func(inner reflect.Type) bool { return !eachField(inner, visit) })
}

// nearestName returns the name that is most likely meant by a misspelled key: with one letter changed, with other
// capitals, or with another ending. It returns "" without such a name. Very short keys would match almost anything, so
// they are compared only by their letters.
func nearestName(key string, names []string) string {
	for _, name := range names {
		if strings.EqualFold(key, name) || len(key) > 2 && (differsByOne(key, name) || isInflected(key, name)) {
			return name
		}
	}
	return ""
}

// isInflected reports whether one text extends the other by up to three letters, such as suspend and suspended.
func isInflected(a, b string) bool {
	return (strings.HasPrefix(a, b) || strings.HasPrefix(b, a)) && max(len(a), len(b))-min(len(a), len(b)) <= 3
}

// differsByOne reports whether two texts differ by one changed, missing or additional letter, or by two swapped
// neighbours.
func differsByOne(a, b string) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	// The common prefix is skipped; one edit must explain the rest.
	i := 0
	for i < len(a) && a[i] == b[i] {
		i++
	}
	switch {
	// One letter more.
	case len(b) == len(a)+1:
		return a[i:] == b[i+1:]
	case len(b) != len(a) || i == len(a):
		return false
	// One other letter.
	case a[i+1:] == b[i+1:]:
		return true
	// Two swapped letters.
	default:
		return i+1 < len(a) && a[i] == b[i+1] && a[i+1] == b[i] && a[i+2:] == b[i+2:]
	}
}
