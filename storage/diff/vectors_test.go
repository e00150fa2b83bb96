package diff_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/json"

	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

// vector is one conformance case: what goes in, and what must come out here.
type vector struct {
	input    map[string]any
	expected any
}

// mustFail tells whether an error is required: the expected value has the single key "error".
func (v vector) mustFail() bool {
	expected, ok := v.expected.(map[string]any)
	_, failed := expected["error"]
	return ok && failed && len(expected) == 1
}

// runVectors runs every case of a family. Cases with a deviation and no result for it are the only ones skipped.
func runVectors(t *testing.T, family string, inputs []string, run func(t *testing.T, v vector)) {
	t.Helper()
	file := decodeFile(t, filepath.Join("testdata", "vectors", family+".json"))
	if file["family"] != family {
		t.Fatalf("the file is of family %v, want %s", file["family"], family)
	}
	for _, item := range file["cases"].([]any) {
		c := item.(map[string]any)
		t.Run(c["name"].(string), func(t *testing.T) {
			requireKeys(t, c, "name", "standing", "deviation", "input", "expected", "expected_here")
			expected, here := c["expected_here"]
			if !here {
				expected = c["expected"]
			}
			if c["deviation"] != nil && !here {
				t.Skipf("deviates: %v", c["deviation"])
			}
			input := c["input"].(map[string]any)
			requireKeys(t, input, inputs...)
			run(t, vector{input: input, expected: expected})
		})
	}
}

func decodeFile(t *testing.T, name string) map[string]any {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatalf("cannot read the vectors: %v", err)
	}
	var file map[string]any
	if err := json.UnmarshalCaseSensitivePreserveInts(data, &file); err != nil {
		t.Fatalf("cannot decode %s: %v", name, err)
	}
	return file
}

func requireKeys(t *testing.T, mapping map[string]any, known ...string) {
	t.Helper()
	for key := range mapping {
		if !slices.Contains(known, key) {
			t.Fatalf("unknown key %q: the harness must learn it", key)
		}
	}
}

func TestVectorsDiff(t *testing.T) {
	scopes := map[any]func(before, after any) diff.Diff{
		nil: diff.Compute, "full": diff.Compute, "left": diff.ComputeLeft, "right": diff.ComputeRight,
	}
	runVectors(t, "diff", []string{"old", "new", "scope"}, func(t *testing.T, v vector) {
		compute, ok := scopes[v.input["scope"]]
		if v.mustFail() {
			if ok {
				t.Fatalf("an error is expected, but the input is valid here: %v", v.input)
			}
			return
		}
		if !ok {
			t.Fatalf("unknown scope %v", v.input["scope"])
		}
		got := items(compute(v.input["old"], v.input["new"]))
		if delta := cmp.Diff(normal(sorted(v.expected)), normal(got)); delta != "" {
			t.Errorf("-want, +got:\n%s", delta)
		}
	})
}

func TestVectorsDiffReduce(t *testing.T) {
	runVectors(t, "diff_reduce", []string{"old", "new", "field"}, func(t *testing.T, v vector) {
		field, err := parseField(v.input["field"])
		if v.mustFail() || err != nil {
			if !v.mustFail() || err == nil {
				t.Fatalf("parsing the field gave %v, an error is expected: %v", err, v.mustFail())
			}
			return
		}
		before, after := v.input["old"], v.input["new"]
		beforeValue, _ := diff.Resolve(before, field)
		afterValue, _ := diff.Resolve(after, field)
		got := map[string]any{
			"path": keysOf(field),
			"diff": items(diff.Compute(before, after).Reduce(field, before, after)),
			"old":  beforeValue,
			"new":  afterValue,
		}
		expected := v.expected.(map[string]any)
		requireKeys(t, expected, "path", "diff", "old", "new")
		expected["diff"] = sorted(expected["diff"])
		if delta := cmp.Diff(normal(expected), normal(got)); delta != "" {
			t.Errorf("-want, +got:\n%s", delta)
		}
	})
}

// parseField reads a field specification of the vectors: null, a dotted string, or a list of keys.
func parseField(spec any) (diff.Path, error) {
	switch spec := spec.(type) {
	case nil:
		return nil, nil
	case string:
		return diff.ParsePath(spec), nil
	case []any:
		var path diff.Path
		for _, key := range spec {
			name, ok := key.(string)
			if !ok {
				return nil, fmt.Errorf("the key %v is not a string", key)
			}
			path = append(path, name)
		}
		return path, nil
	}
	return nil, fmt.Errorf("the field %v is neither null, a string nor a list", spec)
}

// items is a diff in the form of the vectors, in their order: sorted by the path.
func items(d diff.Diff) any {
	list := []any{}
	for _, item := range d {
		list = append(list, []any{string(item.Op), keysOf(item.Path), item.Old, item.New})
	}
	return sorted(list)
}

func keysOf(path diff.Path) []any {
	keys := []any{}
	for _, key := range path {
		keys = append(keys, key)
	}
	return keys
}

func sorted(list any) any {
	result := slices.Clone(list.([]any))
	slices.SortStableFunc(result, func(a, b any) int {
		return strings.Compare(fmt.Sprintf("%q", a.([]any)[1]), fmt.Sprintf("%q", b.([]any)[1]))
	})
	return result
}

// normal turns all numbers into floats, as vectors tell 1 from 1.0 in their text only.
func normal(value any) any {
	switch value := value.(type) {
	case int64:
		return float64(value)
	case []any:
		list := make([]any, len(value))
		for i, item := range value {
			list[i] = normal(item)
		}
		return list
	case map[string]any:
		mapping := make(map[string]any, len(value))
		for key, item := range value {
			mapping[key] = normal(item)
		}
		return mapping
	}
	return value
}
