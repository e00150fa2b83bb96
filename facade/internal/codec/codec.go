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

	"github.com/kopf-runtime/kopf-runtime/reconcilers/cause"
	"github.com/kopf-runtime/kopf-runtime/storage/jsontext"
)

// Codec turns raw objects into T and back.
type Codec[T client.Object] struct {
	typ       reflect.Type // the struct that T points to
	cacheable bool         // whether copies of a T are complete, and cheaper than to decode it again
	last      atomic.Pointer[decoded[T]]
}

// decoded is the object of a cause, decoded for filters.
type decoded[T client.Object] struct {
	cause  *cause.Cause
	object T
	err    error
}

var unstructuredType = reflect.TypeFor[unstructured.Unstructured]()

// New makes a codec for objects of type T, which is a pointer to typ.
func New[T client.Object](typ reflect.Type) *Codec[T] {
	return &Codec[T]{typ: typ, cacheable: typ != unstructuredType && Complete(typ)}
}

// Type is the struct that T points to; nil for a nil codec, of a registration that has failed.
func (c *Codec[T]) Type() reflect.Type {
	if c == nil {
		return nil
	}
	return c.typ
}

// empty makes a T with nothing in it.
func (c *Codec[T]) empty() T {
	object, ok := reflect.New(c.typ).Interface().(T)
	if !ok {
		panic(fmt.Sprintf("%s is not the type of the prototype it was taken from", c.typ)) // it was, in kopf.For
	}
	if raw, ok := any(object).(*unstructured.Unstructured); ok {
		raw.Object = map[string]any{}
	}
	return object
}

// Decode makes a T that shares nothing with the raw object. It leaves out fields that T does not have. A value that
// does not fit into its field is an error that the engine knows by its method Undecodable, also if the value is only
// too large; what could be decoded is given with it.
func (c *Codec[T]) Decode(body map[string]any) (T, error) {
	object := c.empty()
	if raw, ok := any(object).(*unstructured.Unstructured); ok {
		raw.Object = runtime.DeepCopyJSON(body)
		return object, nil
	}
	if err := convert(body, object); err != nil {
		return object, c.decodeError(body, err)
	}
	return object, nil
}

// DecodeFrom is Decode for a raw object that may not be decoded yet; nil does no harm. The raw object is only asked for
// where it cannot be decoded into T at once.
func (c *Codec[T]) DecodeFrom(from *jsontext.Object, raw func() (map[string]any, error)) (T, error) {
	if from.Encoded() {
		object := c.empty()
		into := any(object)
		if raw, ok := into.(*unstructured.Unstructured); ok {
			if from.Decoded() { // a copy costs less
				value, err := from.Value()
				raw.Object = runtime.DeepCopyJSON(value)
				return object, err
			}
			into = &raw.Object
		}
		if from.Into(into) {
			return object, nil
		}
	}
	body, err := raw()
	if err != nil {
		return c.empty(), err
	}
	return c.Decode(body) // which says what is wrong
}

// DecodeOld is Decode for the state that was handled last, which may be nil. It leaves out what does not fit, and says
// so in the error: nobody can change the old state any more, so a handler must not wait for that.
func (c *Codec[T]) DecodeOld(body map[string]any) (T, error) {
	object := c.empty()
	if body == nil {
		return object, nil
	}
	if raw, ok := any(object).(*unstructured.Unstructured); ok {
		raw.Object = runtime.DeepCopyJSON(cause.Bare(body))
		return object, nil
	}
	// The decoder goes on after values that do not fit.
	return object, convert(body, object)
}

// DecodeForFilter is Decode for the object of a cause, of which many filters ask in a row. It decodes the object for
// the first of them, and gives each a copy of its own.
func (c *Codec[T]) DecodeForFilter(of *cause.Cause) (T, error) {
	if !c.cacheable {
		return c.DecodeFrom(of.Object, of.Object.Value)
	}
	last := c.last.Load()
	if last == nil || last.cause != of {
		object, err := c.DecodeFrom(of.Object, of.Object.Value)
		last = &decoded[T]{of, object, err}
		c.last.Store(last)
	}
	if last.err != nil {
		return last.object, last.err
	}
	return DeepCopy(last.object), nil
}

// Copy gives a copy that shares nothing with the object, which may have been modified. Types with state of their own
// know how to copy that.
func (c *Codec[T]) Copy(object T) T {
	if !c.cacheable && c.typ != unstructuredType {
		if copied, ok := object.DeepCopyObject().(T); ok {
			return copied
		}
	}
	return DeepCopy(object)
}

// Replace makes an object what another one is; that one must not be used any more.
func (c *Codec[T]) Replace(object, by T) {
	reflect.ValueOf(object).Elem().Set(reflect.ValueOf(by).Elem())
}

// encode gives the raw form of an object, as apimachinery has it: integers are int64.
func (c *Codec[T]) encode(object T) (tree map[string]any, err error) {
	if raw, ok := any(object).(*unstructured.Unstructured); ok {
		err = convert(raw.Object, &tree)
	} else {
		err = convert(object, &tree)
	}
	if err != nil {
		return nil, err
	}
	return tree, nil
}

// EncodeValue gives the JSON form of any value: nil, bool, int64, float64, string, []any or map[string]any.
func EncodeValue(value any) (encoded any, err error) {
	err = convert(value, &encoded)
	return encoded, err
}

// DecodeObject decodes a JSON object into the Go value that into points to, which is empty. The error does not name Go
// fields.
func DecodeObject(from *jsontext.Object, into any) error {
	if from.Encoded() && from.Into(into) {
		return nil
	}
	value, err := from.Value()
	if err != nil {
		return err
	}
	return DecodeValue(value, into) // which says what is wrong
}

// DecodeValue decodes a value of an object, which is in its JSON form, into the Go value that into points to. The error
// does not name Go fields.
func DecodeValue(value, into any) error {
	if err := convert(value, into); err != nil {
		return withoutGoNames(err)
	}
	return nil
}

// convert makes one Go value of another by way of JSON.
func convert(value, into any) error {
	data, err := json.Marshal(value)
	if err != nil {
		return err
	}
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
