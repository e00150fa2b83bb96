package diff_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/storage/diff"
	"github.com/kopf-runtime/kopf-runtime/test/vectors"
)

func TestVectorsDiff(t *testing.T) {
	scopes := map[any]func(before, after any) diff.Diff{
		nil: diff.Compute, "full": diff.Compute, "left": diff.ComputeLeft, "right": diff.ComputeRight,
	}
	vectors.Run(t, "diff", func(t *testing.T, input map[string]any, want vectors.Expected) {
		vectors.Known(t, input, "old", "new", "scope")
		compute, ok := scopes[input["scope"]]
		if want.MustFail() {
			if ok {
				t.Fatalf("an error is expected, but the input is valid here: %v", input)
			}
			return
		}
		if !ok {
			t.Fatalf("unknown scope %v", input["scope"])
		}
		got := vectorItems(compute(input["old"], input["new"]))
		if delta := cmp.Diff(withFloats(sortedItems(want.Value)), withFloats(got)); delta != "" {
			t.Errorf("-want, +got:\n%s", delta)
		}
	})
}

func TestVectorsDiffReduce(t *testing.T) {
	vectors.Run(t, "diff_reduce", func(t *testing.T, input map[string]any, want vectors.Expected) {
		vectors.Known(t, input, "old", "new", "field")
		field, err := parseField(input["field"])
		if want.MustFail() || err != nil {
			if !want.MustFail() || err == nil {
				t.Fatalf("parsing the field gave %v, an error is expected: %v", err, want.MustFail())
			}
			return
		}
		before, after := input["old"], input["new"]
		beforeValue, _ := diff.ResolvePath(before, field)
		afterValue, _ := diff.ResolvePath(after, field)
		got := map[string]any{
			"path": keysOf(field),
			"diff": vectorItems(diff.Compute(before, after).Reduce(field, before, after)),
			"old":  beforeValue,
			"new":  afterValue,
		}
		expected := vectors.Known(t, want.Value, "path", "diff", "old", "new")
		expected["diff"] = sortedItems(expected["diff"])
		if delta := cmp.Diff(withFloats(map[string]any(expected)), withFloats(got)); delta != "" {
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

// vectorItems returns a diff in the form of the test vectors, sorted by path.
func vectorItems(d diff.Diff) any {
	list := []any{}
	for _, item := range d {
		list = append(list, []any{string(item.Op), keysOf(item.Path), item.Old, item.New})
	}
	return sortedItems(list)
}

func keysOf(path diff.Path) []any {
	keys := []any{}
	for _, key := range path {
		keys = append(keys, key)
	}
	return keys
}

func sortedItems(list any) any {
	result := slices.Clone(list.([]any))
	slices.SortStableFunc(result, func(a, b any) int {
		return strings.Compare(fmt.Sprintf("%q", a.([]any)[1]), fmt.Sprintf("%q", b.([]any)[1]))
	})
	return result
}

// withFloats turns all numbers into floats, because the test vectors distinguish 1 from 1.0 in their text only.
func withFloats(value any) any {
	return vectors.Leaves(value, func(leaf any) any {
		if number, ok := leaf.(int64); ok {
			return float64(number)
		}
		return leaf
	})
}
