package handlers_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/json"

	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

type object = map[string]any

// fields are the keys of an input; one that the harness does not know fails the test.
type fields map[string]any

// runVectors compares what comes out of every case of a family with what must. Only a case that deviates, with no
// result for that, is skipped.
func runVectors(t *testing.T, family string, run func(t *testing.T, input fields) (any, error)) {
	t.Helper()
	data, err := os.ReadFile("testdata/vectors/" + family + ".json")
	if err != nil {
		t.Fatalf("reading the vectors: %v", err)
	}
	var file map[string]any
	if err := json.UnmarshalCaseSensitivePreserveInts(data, &file); err != nil {
		t.Fatalf("decoding the vectors: %v", err)
	}
	cases, _ := file["cases"].([]any)
	if file["family"] != family || len(cases) == 0 {
		t.Fatalf("these are not the vectors of %q: %v, %d cases", family, file["family"], len(cases))
	}
	for _, item := range cases {
		c := known(t, item, "name", "standing", "deviation", "input", "expected", "expected_here")
		name, _ := c["name"].(string)
		t.Run(name, func(t *testing.T) {
			want, here := c["expected_here"]
			if c["deviation"] != nil && !here {
				t.Skipf("deviates: %v", c["deviation"])
			}
			if !here {
				want = c["expected"]
			}
			got, err := run(t, c.mapping("input"))
			compare(t, want, got, err)
		})
	}
}

func compare(t *testing.T, want, got any, err error) {
	t.Helper()
	expected, _ := want.(map[string]any)
	if _, mustFail := expected["error"]; mustFail && len(expected) == 1 {
		if err == nil {
			t.Fatalf("got %v, want an error", got)
		}
		return
	}
	if err != nil {
		t.Fatalf("got error %v, want %v", err, want)
	}
	if want, got = ordered(want), ordered(got); !diff.Equal(want, got) {
		t.Errorf("-want, +got:\n%s", cmp.Diff(want, got))
	}
}

// ordered sorts the items of the diff of a changing cause by their paths: their order says nothing.
func ordered(value any) any {
	root, _ := value.(map[string]any)
	changing, _ := root["changing"].(map[string]any)
	items, _ := changing["diff"].([]any)
	slices.SortStableFunc(items, func(a, b any) int { return strings.Compare(pathText(a), pathText(b)) })
	return value
}

func pathText(item any) string {
	parts, _ := item.([]any)
	keys, _ := parts[1].([]any)
	text := ""
	for _, key := range keys {
		name, _ := key.(string)
		text += "\x00" + name
	}
	return text
}

func known(t *testing.T, value any, keys ...string) fields {
	t.Helper()
	mapping, ok := value.(map[string]any)
	if !ok {
		t.Fatalf("not a mapping: %v", value)
	}
	for key := range mapping {
		if !slices.Contains(keys, key) {
			t.Fatalf("the harness does not know the key %q of %v", key, mapping)
		}
	}
	return mapping
}

func (f fields) text(key, otherwise string) string {
	if value, ok := f[key].(string); ok {
		return value
	}
	return otherwise
}

func (f fields) flag(key string) bool { return f[key] == true }

func (f fields) mapping(key string) fields {
	value, _ := f[key].(map[string]any)
	return value
}

func (f fields) list(key string) []any {
	value, _ := f[key].([]any)
	return value
}

// path reads a specification of a field: a string with dots, or a list of keys. A null or an empty list is none.
func (f fields) path(t *testing.T, key string) diff.Path {
	t.Helper()
	switch spec := f[key].(type) {
	case nil:
		return nil
	case string:
		return diff.ParsePath(spec)
	case []any:
		var path diff.Path
		for _, item := range spec {
			name, ok := item.(string)
			if !ok {
				t.Fatalf("not a path: %v", spec)
			}
			path = append(path, name)
		}
		return path
	default:
		t.Fatalf("not a path: %v", spec)
		return nil
	}
}
