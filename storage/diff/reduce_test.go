package diff_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

func TestReduce(t *testing.T) {
	before := object{"spec": object{"a": int64(1), "keep": "x"}}
	after := object{"spec": object{"a": int64(2), "keep": "x"}, "status": object{"a": "b"}}
	whole := diff.Compute(before, after)
	changed := diff.Item{Op: diff.Change, Old: int64(1), New: int64(2)}

	tests := map[string]struct {
		reason        string
		diff          diff.Diff
		field         diff.Path
		before, after any
		want          diff.Diff
	}{
		"Nothing": {
			reason: "no diff has nothing to be reduced, whatever the values are",
			field:  diff.Path{"spec"}, before: before, after: after,
		},
		"Unrelated": {
			reason: "other fields are not shown",
			diff:   whole, field: diff.Path{"spec", "keep"}, before: before, after: after,
		},
		"SharedBeginning": {
			reason: "paths are compared by keys, not by characters",
			diff:   whole, field: diff.Path{"sp"}, before: before, after: after,
		},
		"Root": {
			reason: "an empty field sees all",
			diff:   whole, field: diff.Path{}, before: before, after: after, want: whole,
		},
		"Exact": {
			reason: "the item of the field itself is at the root, in its only form: nil",
			diff:   whole, field: diff.Path{"spec", "a"}, before: before, after: after,
			want: diff.Diff{changed},
		},
		"Above": {
			reason: "the item of the whole status is replaced by the field's own",
			diff:   whole, field: diff.Path{"status", "a"}, before: before, after: after,
			want: diff.Diff{{Op: diff.Add, New: "b"}},
		},
		"Withheld": {
			reason: "values come from the objects, as items may have none",
			diff:   diff.Diff{{Op: diff.Add, Path: diff.Path{"status"}}},
			field:  diff.Path{"status", "a"}, before: before, after: after,
			want: diff.Diff{{Op: diff.Add, New: "b"}},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := tc.diff.Reduce(tc.field, tc.before, tc.after)
			if delta := cmp.Diff(tc.want, got); delta != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, delta)
			}
			if delta := cmp.Diff(diff.Compute(before, after), whole); delta != "" {
				t.Errorf("the whole diff was modified: -want, +got:\n%s", delta)
			}
		})
	}
}
