package declared

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/utils/ptr"

	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
	"github.com/kopf-runtime/kopf-runtime/test/vectors"
)

// absentValue is what callbacks get for an absent field: something that is no null, and is truthy. For an absent label
// or annotation, they get a null.
type absentValue struct{}

// callback judges a value, or, of a filter of whole objects, a cause.
type callback func(of any) bool

// patternOf makes a pattern of a marker, a callback, or a value to be equal to.
func patternOf(spec any, absent any) (handlers.ValuePattern, error) {
	special, _ := spec.(map[string]any)
	switch special["$"] {
	case nil:
		return handlers.EqualTo(spec), nil
	case "PRESENT":
		return handlers.IsPresent, nil
	case "ABSENT":
		return handlers.IsAbsent, nil
	}
	judge, err := callbackOf(special, "value", valueCallback)
	if err != nil {
		return nil, err
	}
	return func(value any, present bool) bool {
		if !present {
			value = absent
		}
		return judge(value)
	}, nil
}

// callbackOf makes a callback of the kind, or a combination of such.
func callbackOf(
	spec vectors.Fields, kind string, plain func(name string, arg any) (callback, error),
) (callback, error) {
	var inner []callback
	parts := spec.List("of")
	if part := spec.Mapping("of"); part != nil {
		parts = []any{map[string]any(part)}
	}
	for _, part := range parts {
		mapping, _ := part.(map[string]any)
		one, err := callbackOf(mapping, kind, plain)
		if err != nil {
			return nil, err
		}
		inner = append(inner, one)
	}
	anyOf := func(of any) bool { return slices.ContainsFunc(inner, func(c callback) bool { return c(of) }) }
	switch spec["$"] {
	case "all":
		return func(of any) bool { return !slices.ContainsFunc(inner, func(c callback) bool { return !c(of) }) }, nil
	case "any":
		return anyOf, nil
	case "none", "not":
		return func(of any) bool { return !anyOf(of) }, nil
	case kind:
		return plain(spec.Text("fn", ""), spec["arg"])
	default:
		return nil, fmt.Errorf("no callback: %v", spec)
	}
}

func valueCallback(name string, arg any) (callback, error) {
	judge, ok := map[string]callback{
		"always":      func(any) bool { return true },
		"never":       func(any) bool { return false },
		"equals":      func(v any) bool { return v != absentValue{} && diff.Equal(v, arg) },
		"is_none":     func(v any) bool { return v == nil },
		"is_not_none": func(v any) bool { return v != nil },
		"is_json":     func(v any) bool { return v != absentValue{} },
		"truthy":      truthy,
		"greater":     func(v any) bool { return number(v) != nil && *number(v) > *number(arg) },
		"startswith": func(v any) bool {
			text, isText := v.(string)
			prefix, _ := arg.(string)
			return isText && strings.HasPrefix(text, prefix)
		},
	}[name]
	if !ok {
		return nil, fmt.Errorf("no callback of values: %q", name)
	}
	return judge, nil
}

func truthy(value any) bool {
	switch value := value.(type) {
	case nil:
		return false
	case bool:
		return value
	case string:
		return value != ""
	case []any:
		return len(value) > 0
	case map[string]any:
		return len(value) > 0
	case int64, float64:
		return *number(value) != 0
	default:
		return true
	}
}

func number(value any) *float64 {
	switch value := value.(type) {
	case int64:
		return ptr.To(float64(value))
	case float64:
		return &value
	default:
		return nil
	}
}

// metadataFilters are the filters by patterns of the labels, or of the annotations.
func metadataFilters(name string, patterns vectors.Fields) ([]handlers.Filter, error) {
	var all []handlers.Filter
	for key, spec := range patterns {
		if spec == nil {
			return nil, fmt.Errorf("%s: a null is not a pattern: %q", name, key)
		}
		one, err := patternOf(spec, nil)
		if err != nil {
			return nil, err
		}
		all = append(all, handlers.MatchMetadata(name, key, one))
	}
	return all, nil
}

// fieldPattern is for the field as it is specified: an empty list is one, though it restricts nothing.
func fieldPattern(field, spec any) (handlers.ValuePattern, error) {
	if field == nil {
		return nil, errors.New("a pattern of a value without a field")
	}
	return patternOf(spec, absentValue{})
}
