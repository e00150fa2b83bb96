package codec

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"
	kjson "sigs.k8s.io/json"
)

// decodeError reports that an object does not fit into the Go type of its handlers. They cannot be called until the
// object or the type changes.
type decodeError struct {
	object string // namespace/name
	typ    string
	field  string // empty if it is unknown
	err    error
}

// Error names the object, the type and the field.
func (e *decodeError) Error() string {
	if e.field == "" {
		return fmt.Sprintf("object %s does not fit into %s: %v", e.object, e.typ, e.err)
	}
	return fmt.Sprintf("object %s does not fit into %s: field %s: %v", e.object, e.typ, e.field, e.err)
}

// Unwrap returns the error of the decoder.
func (e *decodeError) Unwrap() error { return e.err }

// Undecodable makes the engine wait for another state of the object. The attempt is not counted as a failure of the
// handler.
func (e *decodeError) Undecodable() bool { return true }

// newDecodeError returns an error with the field and the reason.
func (c *Codec[T]) newDecodeError(body map[string]any, err error) error {
	searched := 0
	path, err := c.findMisfit(body, func(part any) any { return part }, err, &searched)
	return &decodeError{
		object: ObjectName(body), typ: reflect.PointerTo(c.typ).String(), field: strings.Join(path, "."),
		err: withoutGoNames(err),
	}
}

// maxSearchedBytes is the number of encoded bytes after which the search for a misfit stops and reports the field found
// so far. Without a limit, the search costs the size of the object for each level of nesting.
const maxSearchedBytes = 1 << 20

// findMisfit returns the path of the innermost part of a value that does not decode on its own, and the error for that
// part. The decoder names the field only in some of its errors. The search is slow, but it runs only after a failure.
// The error is that of the whole value, and place returns an object with nothing but a part at the path of the value.
func (c *Codec[T]) findMisfit(
	value any, place func(part any) any, err error, searched *int,
) (path []string, innermost error) {
	_, isList := value.([]any)
	for key, child := range childParts(value) {
		if *searched > maxSearchedBytes {
			break
		}
		placeChild := func(part any) any {
			// An item of a list becomes the only item, since its index does not matter for decoding.
			if isList {
				return place([]any{part})
			}
			return place(map[string]any{key: part})
		}
		data, encodeErr := json.Marshal(placeChild(child))
		if encodeErr != nil {
			continue
		}
		*searched += len(data)
		// The search descends into the first part that fails on its own.
		if err := kjson.UnmarshalCaseSensitivePreserveInts(data, c.newEmpty()); err != nil {
			path, innermost = c.findMisfit(child, placeChild, err, searched)
			return append([]string{key}, path...), innermost
		}
	}
	return nil, err
}

// childParts iterates over the parts of a map or list. The keys of a map are sorted, so that the reported field is
// always the same.
func childParts(value any) func(yield func(string, any) bool) {
	return func(yield func(string, any) bool) {
		switch value := value.(type) {
		case map[string]any:
			for _, key := range slices.Sorted(maps.Keys(value)) {
				if !yield(key, value[key]) {
					return
				}
			}
		case []any:
			// Indices are parts of the reported path.
			for i, item := range value {
				if !yield(strconv.Itoa(i), item) {
					return
				}
			}
		}
	}
}

// MismatchError reports that a value has another type than the Go value it is decoded into.
type MismatchError struct{ value, typ string }

// Error names both types; a number is named by its value.
func (e *MismatchError) Error() string {
	return fmt.Sprintf("%s cannot be decoded into a Go %s", e.value, e.typ)
}

// withoutGoNames removes the Go field from a decoder's error, because users know only the fields of the object.
func withoutGoNames(err error) error {
	text := err.Error()
	// The text is like "json: cannot unmarshal string into Go struct field Spec.spec.replicas of type int32".
	if rest, ok := strings.CutPrefix(text, "json: cannot unmarshal "); ok {
		value, _, _ := strings.Cut(rest, " into Go ")
		_, typ, found := strings.Cut(rest, " of type ")
		if found {
			return &MismatchError{value, typ}
		}
	}
	return errors.New(text)
}

// ObjectName returns "namespace/name", or only the name of a cluster-scoped object, for messages.
func ObjectName(body map[string]any) string {
	return cache.MetaObjectToName(&unstructured.Unstructured{Object: body}).String()
}
