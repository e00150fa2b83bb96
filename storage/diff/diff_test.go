package diff_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/storage/diff"
	"github.com/kopf-runtime/kopf-runtime/test/growth"
)

type (
	object = map[string]any
	list   = []any
)

func TestCompute(t *testing.T) {
	tests := map[string]struct {
		reason        string
		before, after any
		want          diff.Diff
	}{
		"NilObject": {
			reason: "a nil map counts as null, so a creation is one item",
			before: object(nil),
			after:  object{"spec": object{}},
			want:   diff.Diff{{Op: diff.Add, New: object{"spec": object{}}}},
		},
		"NilList": {
			reason: "a nil slice is null in JSON, so it equals an absent key",
			before: object{"a": list(nil)},
			after:  object{},
		},
		"NullInsideRemoved": {
			reason: "a mapping of nulls is a value; only its keys count as absent",
			before: object{"a": object{"b": nil}},
			after:  object{},
			want:   diff.Diff{{Op: diff.Remove, Path: diff.Path{"a"}, Old: object{"b": nil}}},
		},
		"NullToEmpty": {
			reason: "an empty mapping is a value, unlike null",
			before: object{"a": nil},
			after:  object{"a": object{}},
			want:   diff.Diff{{Op: diff.Add, Path: diff.Path{"a"}, New: object{}}},
		},
		"BooleanInsideList": {
			reason: "the types of JSON count at any depth, so true is not 1 inside lists",
			before: list{object{"a": true}},
			after:  list{object{"a": int64(1)}},
			want:   diff.Diff{{Op: diff.Change, Old: list{object{"a": true}}, New: list{object{"a": int64(1)}}}},
		},
		"IntegerToFloat": {
			reason: "an integer equals a float of the same value at any depth",
			before: object{"a": list{object{"b": int64(1)}}},
			after:  object{"a": list{object{"b": 1.0}}},
		},
		"Order": {
			reason: "items are sorted: added, removed and common keys, each by name",
			before: object{"d": int64(1), "c": int64(1), "z": object{"y": int64(1), "x": int64(1)}, "m": int64(1)},
			after:  object{"b": int64(2), "a": int64(2), "z": object{"y": int64(2), "w": int64(2)}, "m": int64(2)},
			want: diff.Diff{
				{Op: diff.Add, Path: diff.Path{"a"}, New: int64(2)},
				{Op: diff.Add, Path: diff.Path{"b"}, New: int64(2)},
				{Op: diff.Remove, Path: diff.Path{"c"}, Old: int64(1)},
				{Op: diff.Remove, Path: diff.Path{"d"}, Old: int64(1)},
				{Op: diff.Change, Path: diff.Path{"m"}, Old: int64(1), New: int64(2)},
				{Op: diff.Add, Path: diff.Path{"z", "w"}, New: int64(2)},
				{Op: diff.Remove, Path: diff.Path{"z", "x"}, Old: int64(1)},
				{Op: diff.Change, Path: diff.Path{"z", "y"}, Old: int64(1), New: int64(2)},
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := diff.Compute(tc.before, tc.after)
			if delta := cmp.Diff(tc.want, got); delta != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, delta)
			}
		})
	}
}

func TestComputeScopes(t *testing.T) {
	before := object{"both": object{"old": int64(1)}, "null": nil, "old": int64(1)}
	after := object{"both": object{"new": int64(2)}, "null": int64(2), "new": int64(2)}
	removed := diff.Item{Op: diff.Remove, Path: diff.Path{"old"}, Old: int64(1)}
	added := diff.Item{Op: diff.Add, Path: diff.Path{"new"}, New: int64(2)}
	removedBelow := diff.Item{Op: diff.Remove, Path: diff.Path{"both", "old"}, Old: int64(1)}
	addedBelow := diff.Item{Op: diff.Add, Path: diff.Path{"both", "new"}, New: int64(2)}
	set := diff.Item{Op: diff.Add, Path: diff.Path{"null"}, New: int64(2)}

	tests := map[string]struct {
		reason  string
		compute func(before, after any) diff.Diff
		want    diff.Diff
	}{
		"Left": {
			reason:  "the left scope leaves out keys of the new side only, but not a key with a null",
			compute: diff.ComputeLeft,
			want:    diff.Diff{removed, removedBelow, set},
		},
		"Right": {
			reason:  "the right scope leaves out keys of the old side only, also below common keys",
			compute: diff.ComputeRight,
			want:    diff.Diff{added, addedBelow, set},
		},
		"Full": {
			reason:  "the full scope leaves out nothing",
			compute: diff.Compute,
			want:    diff.Diff{added, removed, addedBelow, removedBelow, set},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if delta := cmp.Diff(tc.want, tc.compute(before, after)); delta != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, delta)
			}
		})
	}
}

func TestItemString(t *testing.T) {
	tests := map[string]struct {
		reason string
		item   diff.Item
		want   string
	}{
		"NotJSON": {
			reason: "an item whose value is not JSON is still shown",
			item:   diff.Item{Op: diff.Add, Path: diff.Path{"a"}, New: complex(1, 2)},
			want:   `add a: (1+2i)`,
		},
		"Root": {
			reason: "an item of the root is shown without a path",
			item:   diff.Item{Op: diff.Remove, Old: object{"b": nil, "a": list{}}},
			want:   `remove: {"a":[],"b":null}`,
		},
		"Change": {
			reason: "a change is shown with both values, without HTML escapes",
			item:   diff.Item{Op: diff.Change, Path: diff.Path{"spec", "x"}, Old: "<a>", New: int64(1)},
			want:   `change spec.x: "<a>" -> 1`,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if delta := cmp.Diff(tc.want, tc.item.String()); delta != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, delta)
			}
		})
	}
}

// nested returns mappings nested to the depth, with the value at each level.
func nested(levels int, value any) any {
	inner := value
	for range levels {
		inner = map[string]any{"leaf": value, "in": inner}
	}
	return inner
}

func TestDeepLinear(t *testing.T) {
	growth.Linear(t, 1000, func(size int) func() {
		before, after := nested(size, "x"), nested(size, "y")
		return func() { diff.Compute(before, after) }
	})
}

// TestManyKeysLinear shows that the cost is linear in the number of keys, below a chain of mappings and at its links.
func TestManyKeysLinear(t *testing.T) {
	tree := func(keys, links int, value string) any {
		inner := map[string]any{}
		for i := range keys {
			inner[fmt.Sprint(i)] = value
		}
		for range links {
			inner = map[string]any{"in": inner, value: value}
		}
		return inner
	}
	for _, links := range []int{0, 7, 120} {
		growth.Linear(t, 10_000, func(size int) func() {
			before, after := tree(size, links, "x"), tree(size, links, "y")
			return func() { diff.Compute(before, after) }
		})
	}
}

// TestDepth shows that the same rules apply beyond the depth to which items are made.
func TestDepth(t *testing.T) {
	type m = map[string]any
	tests := map[string]struct {
		reason        string
		before, after any
		full          bool
		left, right   bool // whether there is a difference in these scopes
	}{
		"Equal": {reason: "equal values have no difference",
			before: m{"a": m{"b": int64(1)}}, after: m{"a": m{"b": 1.0}}},
		"Changed": {
			reason: "a changed value differs in all scopes",
			before: m{"a": m{"b": "x"}}, after: m{"a": m{"b": "y"}}, full: true, left: true,
			right: true,
		},
		"Added": {
			reason: "an added key is left out of the left scope",
			before: m{"a": m{}}, after: m{"a": m{"b": "y"}}, full: true,
			right: true,
		},
		"Removed": {
			reason: "a removed key is left out of the right scope",
			before: m{"a": m{"b": "y"}}, after: m{"a": m{}}, full: true,
			left: true,
		},
		"Null": {reason: "a null equals an absent key", before: m{"a": m{"b": nil}}, after: m{"a": m{}}},
		"NullsOnBothSides": {
			reason: "nulls of different keys are equal", before: m{"a": m{"b": nil}}, after: m{"a": m{"c": nil}},
		},
		"OtherKind": {
			reason: "a list differs from a mapping", before: m{"a": m{"b": []any{}}}, after: m{"a": m{"b": m{}}},
			full: true, left: true, right: true,
		},
		"NilMapping": {
			reason: "a nil mapping is null, so it differs from an empty one",
			before: m{"a": m{"b": m(nil)}}, after: m{"a": m{"b": m{}}},
			full: true, left: true, right: true,
		},
		"Kind": {
			reason: "a mapping differs from a list",
			before: m{"a": m{"b": m{}}}, after: m{"a": m{"b": []any{}}}, full: true,
			left: true, right: true,
		},
	}
	wrapped := func(value any) any {
		for range diff.MaxDepth {
			value = m{"in": value}
		}
		return value
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			before, after := wrapped(tc.before), wrapped(tc.after)
			got := []bool{
				len(diff.Compute(before, after)) > 0, len(diff.ComputeLeft(before, after)) > 0,
				len(diff.ComputeRight(before, after)) > 0,
			}
			if delta := cmp.Diff([]bool{tc.full, tc.left, tc.right}, got); delta != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, delta)
			}
			for _, item := range diff.Compute(before, after) {
				if len(item.Path) != diff.MaxDepth || !cmp.Equal(
					item.Old, tc.before,
				) || !cmp.Equal(item.New, tc.after) {
					t.Errorf("%s\nwant both values as a whole at the depth, got %v", tc.reason, item)
				}
			}
		})
	}
}

func ExampleCompute() {
	before := map[string]any{"spec": map[string]any{"owner": "ann", "size": int64(1), "note": nil}}
	after := map[string]any{"spec": map[string]any{"owner": "bob", "size": 1.0, "tags": []any{"x", "y"}}}
	for _, item := range diff.Compute(before, after) {
		fmt.Println(item)
	}
	// Output:
	// add spec.tags: ["x","y"]
	// change spec.owner: "ann" -> "bob"
}

func ExampleDiff_Reduce() {
	after := map[string]any{"spec": map[string]any{"owner": map[string]any{"name": "ann"}}}
	created := diff.Compute(nil, after)
	fmt.Println(created)
	fmt.Println(created.Reduce(diff.ParsePath("spec.owner.name"), nil, after))
	// Output:
	// [add: {"spec":{"owner":{"name":"ann"}}}]
	// [add: "ann"]
}

// TestDepthOfLargeValues shows that the keys of both values limit the depth of items, because each item has a path.
func TestDepthOfLargeValues(t *testing.T) {
	const count, depth = 10_000, 100
	large := func(last string) any {
		value := map[string]any{}
		for i := range count {
			value[fmt.Sprint("key", i)] = last
		}
		for range depth {
			value = map[string]any{"in": value}
		}
		return value
	}
	got := diff.Compute(large("x"), large("y"))
	if len(got) != 1 || len(got[0].Path) >= depth {
		t.Errorf("a large mapping deep inside must be one item with a short path, got %d items", len(got))
	}
}
