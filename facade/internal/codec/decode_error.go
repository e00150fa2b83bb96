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
	kjson "sigs.k8s.io/json"
)

// decodeError says that an object does not fit into the type that its handlers are written for: they cannot be called
// until the object, or the type, is changed.
type decodeError struct {
	object string // namespace/name
	typ    string
	field  string // empty if it is not known
	err    error
}

// Error names the object, the type and the field.
func (e *decodeError) Error() string {
	if e.field == "" {
		return fmt.Sprintf("object %s does not fit into %s: %v", e.object, e.typ, e.err)
	}
	return fmt.Sprintf("object %s does not fit into %s: field %s: %v", e.object, e.typ, e.field, e.err)
}

// Unwrap gives the error of the decoder.
func (e *decodeError) Unwrap() error { return e.err }

// Undecodable has the engine wait for another state of the object, rather than count a failure of the handler.
func (e *decodeError) Undecodable() bool { return true }

func (c *Codec[T]) decodeError(body map[string]any, err error) error {
	field, err := c.findMisfit(body, err)
	return &decodeError{
		object: ObjectName(body), typ: reflect.PointerTo(c.typ).String(), field: field, err: withoutGoNames(err),
	}
}

// mostSearched is how many bytes are encoded, at least, before the search for a misfit ends with the field that is
// known until then. Without a limit, it would take the size of an object times the number of its levels.
const mostSearched = 1 << 20

// findMisfit finds the innermost field that does not decode with nothing else around it, and the error for it alone:
// the decoder names the field for some errors only. It takes a while, but only where something is wrong.
func (c *Codec[T]) findMisfit(body map[string]any, err error) (string, error) {
	var path []string
	searched := 0
	value, whole := any(body), func(part any) any { return part }
	for {
		key, child, place, childErr := c.firstMisfit(value, whole, &searched)
		if childErr == nil {
			return strings.Join(path, "."), err
		}
		path, value, whole, err = append(path, key), child, place, childErr
	}
}

// placement builds an object that has nothing but one part, at the place of that part.
type placement func(part any) any

// firstMisfit finds the first part of a value that does not decode alone.
func (c *Codec[T]) firstMisfit(
	value any, whole placement, searched *int,
) (key string, child any, place placement, err error) {
	for key, child := range children(value) {
		if *searched > mostSearched {
			break
		}
		place := within(whole, value, key)
		data, err := json.Marshal(place(child))
		if err != nil {
			continue
		}
		*searched += len(data)
		if err := kjson.UnmarshalCaseSensitivePreserveInts(data, c.empty()); err != nil {
			return key, child, place, err
		}
	}
	return "", nil, nil, nil
}

// children are the parts of a mapping or a list, in a fixed order.
func children(value any) func(yield func(string, any) bool) {
	return func(yield func(string, any) bool) {
		switch value := value.(type) {
		case map[string]any:
			for _, key := range slices.Sorted(maps.Keys(value)) {
				if !yield(key, value[key]) {
					return
				}
			}
		case []any:
			for i, item := range value {
				if !yield(strconv.Itoa(i), item) {
					return
				}
			}
		}
	}
}

// within places the parts of a value that has a place itself.
func within(whole placement, value any, key string) placement {
	return func(part any) any {
		if _, isList := value.([]any); isList {
			return whole([]any{part})
		}
		return whole(map[string]any{key: part})
	}
}

// MismatchError says that a value has another type than the Go value that it is decoded into.
type MismatchError struct{ value, typ string }

// Error names both types, and a number by its value.
func (e *MismatchError) Error() string {
	return fmt.Sprintf("%s cannot be decoded into a Go %s", e.value, e.typ)
}

// withoutGoNames leaves out what the decoder says of Go fields: users know the fields of the object.
func withoutGoNames(err error) error {
	text := err.Error()
	if rest, ok := strings.CutPrefix(text, "json: cannot unmarshal "); ok {
		value, _, _ := strings.Cut(rest, " into Go ")
		_, typ, found := strings.Cut(rest, " of type ")
		if found {
			return &MismatchError{value, typ}
		}
	}
	return errors.New(text)
}

// ObjectName is namespace/name, or the name alone, for messages.
func ObjectName(body map[string]any) string {
	u := unstructured.Unstructured{Object: body}
	if u.GetNamespace() == "" {
		return u.GetName()
	}
	return u.GetNamespace() + "/" + u.GetName()
}
