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

// schema makes the type of CEL that objects of a Go type have; it remembers what fields there are at all.
type schema struct {
	names []string
	open  []reflect.Type // the structs that are being made: one within itself may be anything
}

var (
	marshaler     = reflect.TypeFor[json.Marshaler]()
	textMarshaler = reflect.TypeFor[encoding.TextMarshaler]()
	// texts are types whose JSON is a text, although that is not what they consist of.
	texts = []reflect.Type{
		reflect.TypeFor[metav1.Time](), reflect.TypeFor[metav1.MicroTime](), reflect.TypeFor[metav1.Duration](),
	}
	untypedObject = reflect.TypeFor[unstructured.Unstructured]()
)

// of gives the type by its JSON. The name is the path to it, which has to be unique.
func (s *schema) of(typ reflect.Type, name string) *apiservercel.DeclType {
	for typ.Kind() == reflect.Pointer {
		typ = typ.Elem()
	}
	switch {
	case slices.Contains(texts, typ):
		return apiservercel.StringType
	case typ == untypedObject, typ.Kind() == reflect.Interface, implements(typ, marshaler):
		return apiservercel.DynType
	case implements(typ, textMarshaler):
		return apiservercel.StringType
	}
	switch typ.Kind() {
	case reflect.Slice, reflect.Array:
		if typ.Kind() == reflect.Slice && typ.Elem().Kind() == reflect.Uint8 {
			return apiservercel.StringType
		}
		return apiservercel.NewListType(s.of(typ.Elem(), name+".@idx"), -1)
	case reflect.Map:
		return apiservercel.NewMapType(apiservercel.StringType, s.of(typ.Elem(), name+".@elem"), -1)
	case reflect.Struct:
		return s.ofStruct(typ, name)
	default:
		return ofScalar(typ.Kind())
	}
}

func ofScalar(kind reflect.Kind) *apiservercel.DeclType {
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

// selectable are names that can stand behind a dot in CEL.
var selectable = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]*$`)

// words are names that cannot, for all that.
var words = []string{"in", "true", "false", "null"}

// ofStruct gives an object type, or a mapping of anything if there are fields that can only be had by an index, such as
// object.spec["a-b"], which objects do not have.
func (s *schema) ofStruct(typ reflect.Type, name string) *apiservercel.DeclType {
	if slices.Contains(s.open, typ) {
		return apiservercel.DynType
	}
	s.open = append(s.open, typ)
	defer func() { s.open = s.open[:len(s.open)-1] }()
	fields, byIndex := map[string]*apiservercel.DeclField{}, false
	eachField(typ, func(key string, field reflect.StructField) {
		if fields[key] != nil {
			return
		}
		byIndex = byIndex || !selectable.MatchString(key) || slices.Contains(words, key)
		s.names = append(s.names, key)
		of := s.of(field.Type, name+"."+key)
		if strings.Contains(field.Tag.Get("json"), ",string") {
			of = apiservercel.DynType
		}
		fields[key] = apiservercel.NewDeclField(key, of, false, nil, nil)
	})
	if byIndex {
		return apiservercel.NewMapType(apiservercel.StringType, apiservercel.DynType, -1)
	}
	return apiservercel.NewObjectType(name, fields)
}

func implements(typ, what reflect.Type) bool {
	return typ.Implements(what) || reflect.PointerTo(typ).Implements(what)
}

// eachField visits the fields of a struct by their names in JSON, and then those of embedded structs, whose names they
// may hide.
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
