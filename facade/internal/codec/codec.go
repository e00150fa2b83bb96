package codec

import (
	"encoding/json"
	"fmt"
	"reflect"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kjson "sigs.k8s.io/json"

	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/jsontext"
)

// Codec converts raw objects to T and back. It may be used concurrently.
type Codec[T client.Object] struct {
	typ         reflect.Type               // the struct that T points to
	lastDecoded atomic.Pointer[decoded[T]] // the result of the last DecodeForFilter
}

// decoded is the object of a cause in the form that filters get.
type decoded[T client.Object] struct {
	cause  *cause.Cause
	object T
	err    error
}

// unstructuredType is the type of objects without a Go type: their raw form is their content.
var unstructuredType = reflect.TypeFor[unstructured.Unstructured]()

// New returns a codec for objects of type T, which is a pointer to typ.
func New[T client.Object](typ reflect.Type) *Codec[T] {
	return &Codec[T]{typ: typ}
}

// StructType returns the struct type that T points to. It returns nil for a nil codec, which belongs to a failed
// registration.
func (c *Codec[T]) StructType() reflect.Type {
	if c == nil {
		return nil
	}
	return c.typ
}

// newEmpty returns a new T without content.
func (c *Codec[T]) newEmpty() T {
	object, ok := reflect.New(c.typ).Interface().(T)
	if !ok {
		panic(fmt.Sprintf("%s is not the type of the prototype it was taken from", c.typ)) // unreachable, see kopf.For
	}
	if raw, ok := any(object).(*unstructured.Unstructured); ok {
		raw.Object = map[string]any{}
	}
	return object
}

// Decode returns a new T with a deep copy of the raw object's values. Fields that T does not have are ignored. A value
// that does not fit into its field, or that is too large for it, is an error with the method Undecodable, which the
// engine recognizes. The decodable rest is returned with the error.
func (c *Codec[T]) Decode(body map[string]any) (T, error) {
	object := c.newEmpty()
	if raw, ok := any(object).(*unstructured.Unstructured); ok {
		// Handlers may modify their object, but the raw one is shared.
		raw.Object = runtime.DeepCopyJSON(body)
		return object, nil
	}
	if err := convertByJSON(body, object); err != nil {
		return object, c.newDecodeError(body, err)
	}
	return object, nil
}

// DecodeFrom returns the same as Decode for an object whose JSON may not be parsed yet. From may be nil. It avoids the
// raw form where possible: it calls raw only if the JSON text does not decode into T.
func (c *Codec[T]) DecodeFrom(from *jsontext.LazyObject, raw func() (map[string]any, error)) (T, error) {
	// The JSON text decodes directly into T, without an intermediate map.
	if from.IsEncoded() {
		object := c.newEmpty()
		into := any(object)
		if raw, ok := into.(*unstructured.Unstructured); ok {
			if from.IsDecoded() { // a copy of the parsed value is cheaper than to parse again
				value, err := from.Value()
				raw.Object = runtime.DeepCopyJSON(value)
				return object, err
			}
			into = &raw.Object
		}
		if from.DecodeInto(into) {
			return object, nil
		}
	}
	// There is no text, or it does not fit into T. Decode repeats the attempt for its precise error.
	body, err := raw()
	if err != nil {
		return c.newEmpty(), err
	}
	return c.Decode(body) // its error names the field
}

// DecodeOld decodes the last-handled configuration, which may be nil. Values that do not fit are left out and reported
// in the error, but they must not block the handler: users cannot correct the stored state.
func (c *Codec[T]) DecodeOld(body map[string]any) (T, error) {
	object := c.newEmpty()
	if body == nil {
		return object, nil
	}
	if raw, ok := any(object).(*unstructured.Unstructured); ok {
		raw.Object = runtime.DeepCopyJSON(cause.WithoutHidden(body))
		return object, nil
	}
	// The decoder continues after a value that does not fit.
	return object, convertByJSON(body, object)
}

// DecodeForFilter decodes the object of a cause for filters. Many filters of one cause are evaluated in a row, so the
// object is decoded once, and each caller gets its own copy.
func (c *Codec[T]) DecodeForFilter(of *cause.Cause) (T, error) {
	// An unstructured object is decoded by a deep copy anyway, so there is nothing to cache.
	if c.typ == unstructuredType {
		return c.DecodeFrom(of.Object, of.Object.Value)
	}
	// Concurrent workers overwrite each other's entry. That costs only another decoding, as entries are compared by
	// cause.
	last := c.lastDecoded.Load()
	if last == nil || last.cause != of {
		// Errors are cached as well: each filter of the cause reports the same one.
		object, err := c.DecodeFrom(of.Object, of.Object.Value)
		last = &decoded[T]{of, object, err}
		c.lastDecoded.Store(last)
	}
	if last.err != nil {
		return last.object, last.err
	}
	copied, isComplete := copyDeep(last.object)
	if !isComplete {
		return c.DecodeFrom(of.Object, of.Object.Value)
	}
	return copied, nil
}

// Copy returns a deep copy of the object, which the user may have modified. Types with unexported fields are copied by
// their own DeepCopyObject. That of unstructured objects panics for values that are not of JSON; these are shared.
func (c *Codec[T]) Copy(object T) T {
	copied, isComplete := copyDeep(object)
	if !isComplete && c.typ != unstructuredType {
		if own, ok := object.DeepCopyObject().(T); ok {
			return own
		}
	}
	return copied
}

// ReplaceContent overwrites the object with the content of another one. The other one must not be used afterwards,
// because both share their fields.
func (c *Codec[T]) ReplaceContent(object, by T) {
	reflect.ValueOf(object).Elem().Set(reflect.ValueOf(by).Elem())
}

// encodeRaw returns the raw form of an object with the types of apimachinery: integers are int64.
func (c *Codec[T]) encodeRaw(object T) (tree map[string]any, err error) {
	err = convertByJSON(encodedForm(object), &tree)
	return tree, err
}

// encodedForm returns the value whose JSON is that of the object. Unstructured objects have an encoder with checks and
// additions of its own, so this is their content.
func encodedForm(object any) any {
	if raw, ok := object.(*unstructured.Unstructured); ok {
		return raw.Object
	}
	return object
}

// EncodeValue returns the JSON form of any value: nil, bool, int64, float64, string, []any or map[string]any.
func EncodeValue(value any) (encoded any, err error) {
	err = convertByJSON(value, &encoded)
	return encoded, err
}

// DecodeObject decodes a JSON object into the empty Go value that into points to. Its error does not mention Go fields.
func DecodeObject(from *jsontext.LazyObject, into any) error {
	if from.IsEncoded() && from.DecodeInto(into) {
		return nil
	}
	value, err := from.Value()
	if err != nil {
		return err
	}
	return DecodeValue(value, into) // its error is readable for users
}

// DecodeValue decodes a value in JSON form into the Go value that into points to. Its error does not mention Go fields.
func DecodeValue(value, into any) error {
	if err := convertByJSON(value, into); err != nil {
		return withoutGoNames(err)
	}
	return nil
}

// convertByJSON converts one Go value into another by way of JSON. Into a Go struct, field names are matched
// case-sensitively and integers are preserved, as the API server does.
func convertByJSON(value, into any) error {
	// JSON is the common form of all Go types of an object, including users' own encoders.
	data, err := json.Marshal(value)
	if err != nil {
		return err
	}
	// The decoders of jsontext return int64 for integers; encoding/json would return float64 and lose digits.
	switch into := into.(type) {
	case *any:
		*into, err = jsontext.Decode(data)
	case *map[string]any:
		*into, err = jsontext.DecodeObject(data)
	default:
		err = kjson.UnmarshalCaseSensitivePreserveInts(data, into)
	}
	return err
}
