package diff_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

func TestCopySharesNothing(t *testing.T) {
	tree := func() map[string]any {
		return map[string]any{
			"list": []any{map[string]any{"a": int64(1)}, nil, "x"}, "empty": map[string]any{}, "none": []any(nil),
			"odd": 7,
		}
	}
	original := tree()
	copied, ok := diff.Copy(original).(map[string]any)
	if !ok {
		t.Fatal("a mapping stays one")
	}
	want := tree()
	want["none"] = nil
	if d := cmp.Diff(want, copied); d != "" {
		t.Errorf("-want, +got:\n%s", d)
	}
	copied["list"].([]any)[0].(map[string]any)["a"] = "changed"
	copied["list"].([]any)[2] = "changed"
	copied["empty"].(map[string]any)["new"] = "changed"
	if d := cmp.Diff(tree(), original); d != "" {
		t.Errorf("the copy is not one: -want, +got:\n%s", d)
	}
}

func TestCloneSharesNothing(t *testing.T) {
	before, after := map[string]any{"spec": map[string]any{"a": []any{"x"}}}, map[string]any{
		"spec": map[string]any{"a": []any{"y"}, "b": map[string]any{}},
	}
	original := diff.Compute(before, after)
	want := diff.Compute(before, after)
	cloned := original.Clone()
	if d := cmp.Diff(want, cloned); d != "" {
		t.Errorf("-want, +got:\n%s", d)
	}
	for i, item := range cloned {
		item.Path[0] = "changed"
		if list, ok := item.New.([]any); ok {
			list[0] = "changed"
		}
		if list, ok := item.Old.([]any); ok {
			list[0] = "changed"
		}
		cloned[i] = diff.Item{}
	}
	if d := cmp.Diff(want, original); d != "" {
		t.Errorf("-want, +got:\n%s", d)
	}
	if got := diff.Diff(nil).Clone(); got != nil {
		t.Errorf("no diff is none: %v", got)
	}
}
