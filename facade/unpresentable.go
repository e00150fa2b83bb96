package facade

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// unpresentableError says that an object does not fit into the type that its handlers are written for: they cannot be
// called until somebody changes the object, or the type.
type unpresentableError struct {
	object string // namespace/name
	typ    string
	field  string // empty if it is not known
	err    error
}

// Error names the object, the type and the field.
func (e *unpresentableError) Error() string {
	if e.field == "" {
		return fmt.Sprintf("object %s does not fit into %s: %v", e.object, e.typ, e.err)
	}
	return fmt.Sprintf("object %s does not fit into %s: field %s: %v", e.object, e.typ, e.field, e.err)
}

func (e *unpresentableError) Unwrap() error { return e.err }

// Unpresentable is what the engine knows the error by.
func (e *unpresentableError) Unpresentable() bool { return true }

func (f *form[T]) unpresentable(body map[string]any, err error) error {
	field, err := f.misfit(body, err)
	return &unpresentableError{
		object: nameOf(body), typ: reflect.PointerTo(f.typ).String(), field: field, err: plain(err),
	}
}

// misfit finds the innermost field that does not decode with nothing else around it, and the error for it alone: the
// decoder names the field for some errors only. It takes a while, but only where something is wrong.
func (f *form[T]) misfit(body map[string]any, err error) (string, error) {
	var path []string
	value, whole := any(body), func(part any) any { return part }
	for {
		key, child, place, childErr := f.firstMisfit(value, whole)
		if childErr == nil {
			return strings.Join(path, "."), err
		}
		path, value, whole, err = append(path, key), child, place, childErr
	}
}

// placement builds an object that has nothing but a part, at the part's own place.
type placement func(part any) any

func (f *form[T]) firstMisfit(value any, whole placement) (key string, child any, place placement, err error) {
	for key, child := range children(value) {
		place := within(whole, value, key)
		if err := convert(place(child), f.empty()); err != nil {
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

func within(whole placement, value any, key string) placement {
	return func(part any) any {
		if _, isList := value.([]any); isList {
			return whole([]any{part})
		}
		return whole(map[string]any{key: part})
	}
}

// plain leaves out the part of the decoder's message that names Go fields instead of the object's.
func plain(err error) error {
	text := err.Error()
	if rest, ok := strings.CutPrefix(text, "json: cannot unmarshal "); ok {
		value, _, _ := strings.Cut(rest, " into Go ")
		_, typ, found := strings.Cut(rest, " of type ")
		if found {
			return fmt.Errorf("%s cannot be decoded into a Go %s", value, typ)
		}
	}
	return errors.New(text)
}

func nameOf(body map[string]any) string {
	u := unstructured.Unstructured{Object: body}
	if u.GetNamespace() == "" {
		return u.GetName()
	}
	return u.GetNamespace() + "/" + u.GetName()
}
