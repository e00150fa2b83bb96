package diff_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

func TestParsePath(t *testing.T) {
	tests := map[string]struct {
		reason string
		spec   string
		want   diff.Path
	}{
		"Empty":    {reason: "an empty text is one empty key, not the root", spec: "", want: diff.Path{""}},
		"DotsOnly": {reason: "consecutive dots give empty keys", spec: "a..", want: diff.Path{"a", "", ""}},
		"Slash": {
			reason: "only dots separate keys",
			spec:   "metadata.labels.a/b", want: diff.Path{"metadata", "labels", "a/b"},
		},
		"One": {reason: "a text without a dot is one key", spec: "spec", want: diff.Path{"spec"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := diff.ParsePath(tc.spec)
			if delta := cmp.Diff(tc.want, got); delta != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, delta)
			}
			if got.String() != tc.spec {
				t.Errorf("%s: String() = %q, want %q", tc.reason, got.String(), tc.spec)
			}
		})
	}
}

func TestResolve(t *testing.T) {
	body := object{"spec": object{"list": list{"x"}, "null": nil, "text": "t", "a.b": int64(1), "": int64(2)}}
	type result struct {
		Value any
		Found bool
	}
	tests := map[string]struct {
		reason string
		value  any
		path   diff.Path
		want   result
	}{
		"NullRoot":  {reason: "null does not contain fields", value: nil, path: diff.Path{"spec"}},
		"Missing":   {reason: "a missing key is not found", value: body, path: diff.Path{"spec", "absent"}},
		"BelowText": {reason: "a text does not contain fields", value: body, path: diff.Path{"spec", "text", "x"}},
		"BelowNull": {reason: "a null field does not contain fields",
			value: body, path: diff.Path{"spec", "null", "x"}},
		"BelowList": {reason: "a list does not contain fields", value: body, path: diff.Path{"spec", "list", "0"}},
		"DottedSpec": {
			reason: "a dotted text cannot name a key with dots", value: body, path: diff.ParsePath("spec.a.b"),
		},
		"Null": {
			reason: "a null field is found", value: body, path: diff.Path{"spec", "null"}, want: result{nil, true},
		},
		"DottedKey": {
			reason: "a path literal can name a key with dots",
			value:  body, path: diff.Path{"spec", "a.b"}, want: result{int64(1), true},
		},
		"EmptyKey": {
			reason: "an empty key is found", value: body, path: diff.Path{"spec", ""}, want: result{int64(2), true},
		},
		"Root": {reason: "a nil path is the value itself", value: "x", path: nil, want: result{"x", true}},
		"EmptyRoot": {reason: "an empty path is the value itself",
			value: nil, path: diff.Path{}, want: result{nil, true}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			value, found := diff.ResolvePath(tc.value, tc.path)
			if delta := cmp.Diff(tc.want, result{value, found}); delta != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, delta)
			}
		})
	}
}

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
			reason: "an empty diff stays empty, whatever the values are",
			field:  diff.Path{"spec"}, before: before, after: after,
		},
		"Unrelated": {
			reason: "items of other fields are left out",
			diff:   whole, field: diff.Path{"spec", "keep"}, before: before, after: after,
		},
		"SharedBeginning": {
			reason: "paths are compared by keys, not by characters",
			diff:   whole, field: diff.Path{"sp"}, before: before, after: after,
		},
		"Root": {
			reason: "an empty field keeps all items",
			diff:   whole, field: diff.Path{}, before: before, after: after, want: whole,
		},
		"Exact": {
			reason: "the item of the field itself has a nil path",
			diff:   whole, field: diff.Path{"spec", "a"}, before: before, after: after,
			want: diff.Diff{changed},
		},
		"Above": {
			reason: "an item above the field is replaced by the field's own change",
			diff:   whole, field: diff.Path{"status", "a"}, before: before, after: after,
			want: diff.Diff{{Op: diff.Add, New: "b"}},
		},
		"Withheld": {
			reason: "values come from the objects, as items may lack them",
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
