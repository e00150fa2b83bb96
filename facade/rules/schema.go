package rules

import (
	"cmp"
	"encoding"
	"encoding/json"
	"reflect"
	"regexp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apiservercel "k8s.io/apiserver/pkg/cel"
)

// schema builds the CEL type of objects of a Go type.
type schema struct {
	// names collects the names of all fields, for suggestions.
	names            []string
	enclosingStructs []reflect.Type // the structs around the present one; a recursive type can have any value
}

var (
	marshaler     = reflect.TypeFor[json.Marshaler]()
	textMarshaler = reflect.TypeFor[encoding.TextMarshaler]()
	// stringTypes are structs that encode to JSON strings. They implement json.Marshaler, whose result would otherwise
	// be unknown.
	stringTypes = []reflect.Type{
		reflect.TypeFor[metav1.Time](), reflect.TypeFor[metav1.MicroTime](), reflect.TypeFor[metav1.Duration](),
	}
	untypedObject = reflect.TypeFor[unstructured.Unstructured]()
)

// declTypeOf returns the CEL type of the JSON encoding. CEL identifies object types by name, so each has its unique
// path as the name.
func (s *schema) declTypeOf(typ reflect.Type, name string) *apiservercel.DeclType {
	for typ.Kind() == reflect.Pointer {
		typ = typ.Elem()
	}
	switch {
	case slices.Contains(stringTypes, typ):
		return apiservercel.StringType
	case typ == untypedObject, typ.Kind() == reflect.Interface, implementsInterface(typ, marshaler):
		return apiservercel.DynType
	case implementsInterface(typ, textMarshaler):
		return apiservercel.StringType
	}
	switch typ.Kind() {
	case reflect.Slice, reflect.Array:
		// JSON encodes byte slices as base64 strings.
		if typ.Kind() == reflect.Slice && typ.Elem().Kind() == reflect.Uint8 {
			return apiservercel.StringType
		}
		// A length of -1 is unknown.
		return apiservercel.NewListType(s.declTypeOf(typ.Elem(), name+".@idx"), -1)
	case reflect.Map:
		return apiservercel.NewMapType(apiservercel.StringType, s.declTypeOf(typ.Elem(), name+".@elem"), -1)
	case reflect.Struct:
		return s.structDeclType(typ, name)
	default:
		return scalarDeclType(typ.Kind())
	}
}

// scalarDeclType returns the CEL type of a bool, string or number. Unsigned integers are int: JSON does not distinguish
// them.
func scalarDeclType(kind reflect.Kind) *apiservercel.DeclType {
	switch kind {
	case reflect.Bool:
		return apiservercel.BoolType
	case reflect.String:
		return apiservercel.StringType
	case reflect.Float32, reflect.Float64:
		return apiservercel.DoubleType
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return apiservercel.IntType
	default:
		return apiservercel.DynType
	}
}

// identifierPattern matches names that can follow a dot in CEL.
var identifierPattern = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]*$`)

// reservedWords are reserved in CEL: they match selectable but cannot follow a dot.
var reservedWords = []string{"in", "true", "false", "null"}

// structDeclType returns an object type. If a field needs an index, such as object.spec["a-b"], it returns a map of any
// values instead, because CEL object types do not support indices.
func (s *schema) structDeclType(typ reflect.Type, name string) *apiservercel.DeclType {
	if slices.Contains(s.enclosingStructs, typ) {
		return apiservercel.DynType
	}
	s.enclosingStructs = append(s.enclosingStructs, typ)
	defer func() { s.enclosingStructs = s.enclosingStructs[:len(s.enclosingStructs)-1] }()
	fields, byIndex := map[string]*apiservercel.DeclField{}, false
	eachField(typ, func(key string, field reflect.StructField) {
		// The field of an embedded struct is hidden by an outer one of the same name.
		if fields[key] != nil {
			return
		}
		byIndex = byIndex || !identifierPattern.MatchString(key) || slices.Contains(reservedWords, key)
		s.names = append(s.names, key)
		of := s.declTypeOf(field.Type, name+"."+key)
		// The string option changes numbers and bools to JSON strings.
		if strings.Contains(field.Tag.Get("json"), ",string") {
			of = apiservercel.DynType
		}
		// The field is optional, because omitempty can remove it.
		fields[key] = apiservercel.NewDeclField(key, of, false, nil, nil)
	})
	if byIndex {
		return apiservercel.NewMapType(apiservercel.StringType, apiservercel.DynType, -1)
	}
	return apiservercel.NewObjectType(name, fields)
}

// implementsInterface reports whether the type or a pointer to it implements the interface.
func implementsInterface(typ, what reflect.Type) bool {
	return typ.Implements(what) || reflect.PointerTo(typ).Implements(what)
}

// eachField visits the fields of a struct with their JSON names, and then those of embedded structs, whose names they
// can hide.
func eachField(typ reflect.Type, visit func(key string, field reflect.StructField)) {
	var embedded []reflect.Type
	for i := range typ.NumField() {
		field := typ.Field(i)
		tag := field.Tag.Get("json")
		key, _, _ := strings.Cut(tag, ",")
		inner := field.Type
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		part := field.Anonymous && inner.Kind() == reflect.Struct
		switch {
		case tag == "-" || !field.IsExported() && !part:
		case part && key == "":
			embedded = append(embedded, inner)
		default:
			visit(cmp.Or(key, field.Name), field)
		}
	}
	for _, inner := range embedded {
		eachField(inner, visit)
	}
}
