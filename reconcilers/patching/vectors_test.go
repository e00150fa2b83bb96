package patching_test

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

// A vector is one case of a family of conformance data.
type vector struct {
	name  string
	input map[string]any
	want  any
}

// fields are an input's or an expectation's keys; one that the harness does not know fails the test.
type fields map[string]any

// runVectors runs every case of the family. A case whose deviations come without a result here is skipped by its mark.
func runVectors(t *testing.T, family string, run func(t *testing.T, v vector)) {
	t.Helper()
	data, err := os.ReadFile("testdata/vectors/" + family + ".json")
	if err != nil {
		t.Fatalf("reading the vectors: %v", err)
	}
	document := decode(data).(map[string]any)
	cases := document["cases"].([]any)
	if document["family"] != family || len(cases) == 0 {
		t.Fatalf("these are not the vectors of %q: %v, %d cases", family, document["family"], len(cases))
	}
	for _, item := range cases {
		c := known(t, item, "name", "input", "expected", "expected_here", "deviation", "standing")
		name, _ := c["name"].(string)
		t.Run(name, func(t *testing.T) {
			want, given := c["expected_here"]
			if marks := c["deviation"]; !given && marks != nil {
				t.Skipf("deviates by %v", marks)
			}
			if !given {
				want = c["expected"]
			}
			input, _ := c["input"].(map[string]any)
			run(t, vector{name: name, input: input, want: want})
		})
	}
}

func known(t *testing.T, value any, keys ...string) fields {
	t.Helper()
	mapping, ok := value.(map[string]any)
	if !ok {
		t.Fatalf("not a mapping: %v", value)
	}
	allowed := map[string]bool{}
	for _, key := range keys {
		allowed[key] = true
	}
	for key := range mapping {
		if !allowed[key] {
			t.Fatalf("the harness does not know the key %q of %v", key, mapping)
		}
	}
	return mapping
}

func (f fields) mapping(key string) map[string]any {
	value, _ := f[key].(map[string]any)
	return value
}

func (f fields) list(key string) []any {
	value, _ := f[key].([]any)
	return value
}

func (f fields) text(key, otherwise string) string {
	if value, ok := f[key].(string); ok {
		return value
	}
	return otherwise
}

// wantsError tells whether nothing but an error is expected.
func (v vector) wantsError() bool {
	mapping, _ := v.want.(map[string]any)
	_, ok := mapping["error"]
	return ok && len(mapping) == 1
}

// sameJSON compares by type and value, as the vectors ask for: 1 equals 1.0.
func sameJSON(t *testing.T, what string, want, got any) {
	t.Helper()
	got = decode(encode(got))
	if !diff.Equal(want, got) {
		t.Errorf("%s: -want, +got:\n%s", what, cmp.Diff(want, got))
	}
}
