package diff_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/storage/diff"
	"github.com/kopf-runtime/kopf-runtime/test/growth"
)

// nested has a value at each of many levels.
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

// Beyond the depth to which items are made, the rules are the same: only the items are not.
func TestDepth(t *testing.T) {
	type m = map[string]any
	tests := map[string]struct {
		reason        string
		before, after any
		full          bool
		left, right   bool // whether there is a difference in these scopes
	}{
		"Equal": {reason: "Nothing differs.", before: m{"a": m{"b": int64(1)}}, after: m{"a": m{"b": 1.0}}},
		"Changed": {
			reason: "A value differs.", before: m{"a": m{"b": "x"}}, after: m{"a": m{"b": "y"}}, full: true, left: true,
			right: true,
		},
		"Added": {
			reason: "It is overlooked on the left.", before: m{"a": m{}}, after: m{"a": m{"b": "y"}}, full: true,
			right: true,
		},
		"Removed": {
			reason: "It is overlooked on the right.", before: m{"a": m{"b": "y"}}, after: m{"a": m{}}, full: true,
			left: true,
		},
		"Null": {reason: "A null is an absence.", before: m{"a": m{"b": nil}}, after: m{"a": m{}}},
		"NullsOnBothSides": {
			reason: "So are two of them.", before: m{"a": m{"b": nil}}, after: m{"a": m{"c": nil}},
		},
		"Kind": {
			reason: "A mapping is no list.", before: m{"a": m{"b": m{}}}, after: m{"a": m{"b": []any{}}}, full: true,
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
