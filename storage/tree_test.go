package storage_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/storage"
	"github.com/kopf-runtime/kopf-runtime/test/vectors"
)

type object = map[string]any

func TestWithout(t *testing.T) {
	cases := map[string]struct {
		reason string
		tree   object
		path   []string
		want   object
		fails  bool
	}{
		"Root": {
			reason: "A tree without itself is nothing that could be returned.",
			tree:   object{"a": int64(1)},
			fails:  true,
		},
		"Scalar": {
			reason: "What is in the way hides whether there is anything to be removed; the caller decides what that " +
				"means.",
			tree:  object{"a": "text"},
			path:  []string{"a", "b"},
			fails: true,
		},
		"Null": {
			reason: "A null on the way is not a mapping.",
			tree:   object{"a": object{"b": nil}},
			path:   []string{"a", "b", "c"},
			fails:  true,
		},
		"Absent": {
			reason: "What is not there needs no removal, at any depth.",
			tree:   object{"a": object{"b": int64(1)}},
			path:   []string{"a", "c", "d"},
			want:   object{"a": object{"b": int64(1)}},
		},
		"Leaf": {
			reason: "Siblings stay.",
			tree:   object{"a": object{"b": int64(1), "c": int64(2)}, "d": nil},
			path:   []string{"a", "b"},
			want:   object{"a": object{"c": int64(2)}, "d": nil},
		},
		"LastLeaf": {
			reason: "Mappings that become empty go with the last of their keys.",
			tree:   object{"a": object{"b": object{"c": int64(1)}}, "d": int64(2)},
			path:   []string{"a", "b", "c"},
			want:   object{"d": int64(2)},
		},
		"Neighbours": {
			reason: "What stands beside the way stays at every depth, and what is removed is gone at all of them.",
			tree:   object{"a": object{"b": object{"c": int64(1), "d": int64(2)}, "e": int64(3)}, "f": int64(4)},
			path:   []string{"a", "b", "c"},
			want:   object{"a": object{"b": object{"d": int64(2)}, "e": int64(3)}, "f": int64(4)},
		},
		"LastOfOneParent": {
			reason: "A mapping that becomes empty goes, but not the one above it, which has something else.",
			tree:   object{"a": object{"b": object{"c": int64(1)}, "d": int64(2)}},
			path:   []string{"a", "b", "c"},
			want:   object{"a": object{"d": int64(2)}},
		},
		"EmptyParent": {
			reason: "Kopf does not tell a mapping that became empty from one that was.",
			tree:   object{"a": object{}},
			path:   []string{"a", "b"},
			want:   object{},
		},
		"NullLeaf": {
			reason: "A null is there, and is removed as everything else.",
			tree:   object{"a": nil, "b": nil},
			path:   []string{"a"},
			want:   object{"b": nil},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			vectors.Unchanged(t, tc.tree)
			got, err := storage.Without(tc.tree, tc.path)
			if (err != nil) != tc.fails {
				t.Fatalf("%s\ngot error %v, want one: %v", tc.reason, err, tc.fails)
			}
			if delta := cmp.Diff(tc.want, got); delta != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, delta)
			}
		})
	}
}

func TestWith(t *testing.T) {
	cases := map[string]struct {
		reason string
		tree   object
		path   []string
		want   object
	}{
		"Root": {
			reason: "There is no key to set.",
			tree:   object{"a": int64(1)},
			want:   object{"a": int64(1)},
		},
		"Nil": {
			reason: "A nil mapping is an empty one.",
			path:   []string{"a"},
			want:   object{"a": "new"},
		},
		"Deep": {
			reason: "Mappings on the way are made, those that are there are kept.",
			tree:   object{"a": object{"b": int64(1)}, "c": int64(2)},
			path:   []string{"a", "d", "e"},
			want:   object{"a": object{"b": int64(1), "d": object{"e": "new"}}, "c": int64(2)},
		},
		"Scalar": {
			reason: "What cannot have keys makes way.",
			tree:   object{"a": "text"},
			path:   []string{"a", "b"},
			want:   object{"a": object{"b": "new"}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			vectors.Unchanged(t, tc.tree)
			if delta := cmp.Diff(tc.want, storage.With(tc.tree, tc.path, "new")); delta != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, delta)
			}
		})
	}
}

func TestTrim(t *testing.T) {
	cases := map[string]struct {
		reason  string
		essence object
		want    object
	}{
		"Nil": {
			reason: "An object that was never handled has no essence, not an empty one.",
		},
		"Full": {
			reason:  "Nothing is empty here.",
			essence: object{"metadata": object{"labels": object{"a": "b"}}, "status": "x"},
			want:    object{"metadata": object{"labels": object{"a": "b"}}, "status": "x"},
		},
		"Emptied": {
			reason:  "Labels and annotations take the metadata along.",
			essence: object{"metadata": object{"labels": object{}, "annotations": nil}, "spec": object{}},
			want:    object{"spec": object{}},
		},
		"OneOfTwo": {
			reason:  "What is left keeps the metadata.",
			essence: object{"metadata": object{"labels": object{}, "finalizers": []any{}}},
			want:    object{"metadata": object{"finalizers": []any{}}},
		},
		"Null": {
			reason: "A null says nothing.", essence: object{"metadata": nil, "status": nil}, want: object{},
		},
		"EmptyText":   {reason: "It counts as nothing.", essence: object{"status": ""}, want: object{}},
		"EmptyList":   {reason: "It counts as nothing.", essence: object{"status": []any{}}, want: object{}},
		"EmptyObject": {reason: "It counts as nothing.", essence: object{"status": object{}}, want: object{}},
		"Zero":        {reason: "It counts as nothing.", essence: object{"status": int64(0)}, want: object{}},
		"ZeroFloat":   {reason: "It counts as nothing.", essence: object{"status": 0.0}, want: object{}},
		"False":       {reason: "It counts as nothing.", essence: object{"status": false}, want: object{}},
		"Foreign": {
			reason: "What is not of JSON is not known to be nothing.", essence: object{"status": uint8(0)},
			want: object{"status": uint8(0)},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			vectors.Unchanged(t, tc.essence)
			if delta := cmp.Diff(tc.want, storage.Trim(tc.essence)); delta != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, delta)
			}
		})
	}
}

func TestNothingToChangeAllocatesNothing(t *testing.T) {
	essence := object{"metadata": object{"labels": object{"a": "b"}}, "spec": object{"c": object{"d": int64(1)}}}
	if got := testing.AllocsPerRun(100, func() {
		if _, err := storage.Without(essence, []string{"spec", "c", "e"}); err != nil {
			t.Fatal(err)
		}
		storage.Trim(essence)
	}); got != 0 {
		t.Errorf("got %v allocations, want none", got)
	}
}
