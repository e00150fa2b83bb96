package vectors

import (
	"slices"
	"testing"

	"k8s.io/utils/ptr"
)

// Fields are the keys of an input or of an expected value.
type Fields map[string]any

// Known takes a mapping for its fields; a value of another type, and a key that
// is not listed, fail the test: the harness must learn it, not pass it over.
func Known(t testing.TB, value any, keys ...string) Fields {
	t.Helper()
	mapping, ok := value.(map[string]any)
	if fields, is := value.(Fields); is {
		mapping, ok = fields, true
	}
	if !ok {
		t.Fatalf("the harness wants a mapping, not %v", value)
	}
	for key := range mapping {
		if !slices.Contains(keys, key) {
			t.Fatalf("the harness does not know the key %q in %s", key, placeOf(t, mapping))
		}
	}
	return mapping
}

// Text returns a string field, or otherwise if the field is absent or not a string.
func (f Fields) Text(key, otherwise string) string {
	if value, ok := f[key].(string); ok {
		return value
	}
	return otherwise
}

// Flag reports whether the field is true.
func (f Fields) Flag(key string) bool { return f[key] == true }

// Mapping returns a mapping field, or nil.
func (f Fields) Mapping(key string) Fields {
	value, _ := f[key].(map[string]any)
	return value
}

// List returns a list field, or nil.
func (f Fields) List(key string) []any {
	value, _ := f[key].([]any)
	return value
}

// Number is nil if the field is absent or null; anything but a number fails the
// test.
func Number(t testing.TB, f Fields, key string) *float64 {
	t.Helper()
	switch value := f[key].(type) {
	case nil:
		return nil
	case int64:
		return ptr.To(float64(value))
	case float64:
		return &value
	default:
		t.Fatalf("the harness wants a number as %q in %s", key, placeOf(t, f))
		return nil
	}
}
