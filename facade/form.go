package facade

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
)

// form turns raw objects into T and back. What is watched, compared and stored is always the raw object, so the Go type
// decides about nothing but what the functions see.
type form[T client.Object] struct {
	typ   reflect.Type // the struct that T points to
	whole bool         // whether copies of T are whole, and cheaper than to decode it again
	last  atomic.Pointer[showing[T]]
}

// showing is an object decoded for filters.
type showing[T client.Object] struct {
	of     *cause.Cause
	object T
	err    error
}

var unstructuredType = reflect.TypeFor[unstructured.Unstructured]()

func newForm[T client.Object](typ reflect.Type) *form[T] {
	return &form[T]{typ: typ, whole: typ != unstructuredType && separable(typ, map[reflect.Type]bool{})}
}

// empty is a T with nothing in it.
func (f *form[T]) empty() T {
	object, ok := reflect.New(f.typ).Interface().(T)
	if !ok {
		panic(fmt.Sprintf("%s is not the type of the prototype it was taken from", f.typ)) // it was, in For
	}
	if raw, ok := any(object).(*unstructured.Unstructured); ok {
		raw.Object = map[string]any{}
	}
	return object
}

// decode makes a T that shares nothing with the raw object. Fields that T does not have are left out; a value that does
// not fit into its field is an *unpresentableError, also if it is only too large.
func (f *form[T]) decode(body map[string]any) (T, error) {
	object := f.empty()
	if raw, ok := any(object).(*unstructured.Unstructured); ok {
		raw.Object = runtime.DeepCopyJSON(body)
		return object, nil
	}
	if err := convert(body, object); err != nil {
		return object, f.unpresentable(body, err)
	}
	return object, nil
}

// glean is decode that leaves out what does not fit. It is for the old state: the object cannot change it any more, and
// must not wait for that.
func (f *form[T]) glean(body map[string]any) (T, error) {
	object := f.empty()
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

// encode gives the raw form of an object, as apimachinery has it: integers are int64.
func (f *form[T]) encode(object T) (map[string]any, error) {
	if raw, ok := any(object).(*unstructured.Unstructured); ok {
		return asTree(raw.Object)
	}
	return asTree(object)
}

// shown is the decoded object of a cause: a copy for each filter, of one that was decoded once for all that ask in a
// row.
func (f *form[T]) shown(c *cause.Cause) (T, error) {
	if !f.whole {
		return f.decode(c.Body)
	}
	last := f.last.Load()
	if last == nil || last.of != c {
		object, err := f.decode(c.Body)
		last = &showing[T]{c, object, err}
		f.last.Store(last)
	}
	if last.err != nil {
		return last.object, last.err
	}
	return detached(last.object), nil
}

func asTree(value any) (map[string]any, error) {
	var tree map[string]any
	if err := convert(value, &tree); err != nil {
		return nil, err
	}
	return tree, nil
}

// convert makes one Go value of another by way of JSON.
func convert(value, into any) error {
	data, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return kjson.UnmarshalCaseSensitivePreserveInts(data, into)
}
