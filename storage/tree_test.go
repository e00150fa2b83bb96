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
			reason: "the whole tree cannot be removed",
			tree:   object{"a": int64(1)},
			fails:  true,
		},
		"Scalar": {
			reason: "a text on the path is an error: it hides whether there is a value to remove, so the caller " +
				"decides",
			tree:  object{"a": "text"},
			path:  []string{"a", "b"},
			fails: true,
		},
		"Null": {
			reason: "a null on the path is an error",
			tree:   object{"a": object{"b": nil}},
			path:   []string{"a", "b", "c"},
			fails:  true,
		},
		"Absent": {
			reason: "a missing value is not an error at any depth",
			tree:   object{"a": object{"b": int64(1)}},
			path:   []string{"a", "c", "d"},
			want:   object{"a": object{"b": int64(1)}},
		},
		"Leaf": {
			reason: "neighbours of the removed value stay",
			tree:   object{"a": object{"b": int64(1), "c": int64(2)}, "d": nil},
			path:   []string{"a", "b"},
			want:   object{"a": object{"c": int64(2)}, "d": nil},
		},
		"LastLeaf": {
			reason: "mappings that become empty are removed, too",
			tree:   object{"a": object{"b": object{"c": int64(1)}}, "d": int64(2)},
			path:   []string{"a", "b", "c"},
			want:   object{"d": int64(2)},
		},
		"Neighbours": {
			reason: "neighbours at each depth of the path stay",
			tree:   object{"a": object{"b": object{"c": int64(1), "d": int64(2)}, "e": int64(3)}, "f": int64(4)},
			path:   []string{"a", "b", "c"},
			want:   object{"a": object{"b": object{"d": int64(2)}, "e": int64(3)}, "f": int64(4)},
		},
		"LastOfOneParent": {
			reason: "only the mapping that becomes empty is removed",
			tree:   object{"a": object{"b": object{"c": int64(1)}, "d": int64(2)}},
			path:   []string{"a", "b", "c"},
			want:   object{"a": object{"d": int64(2)}},
		},
		"EmptyParent": {
			reason: "a mapping that was empty before is removed, as in Kopf",
			tree:   object{"a": object{}},
			path:   []string{"a", "b"},
			want:   object{},
		},
		"NullLeaf": {
			reason: "a null value is removed",
			tree:   object{"a": nil, "b": nil},
			path:   []string{"a"},
			want:   object{"b": nil},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			vectors.Unchanged(t, tc.tree)
			got, err := storage.WithoutValue(tc.tree, tc.path)
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
			reason: "an empty path changes nothing",
			tree:   object{"a": int64(1)},
			want:   object{"a": int64(1)},
		},
		"Nil": {
			reason: "a nil mapping counts as empty",
			path:   []string{"a"},
			want:   object{"a": "new"},
		},
		"Deep": {
			reason: "missing mappings on the path are created",
			tree:   object{"a": object{"b": int64(1)}, "c": int64(2)},
			path:   []string{"a", "d", "e"},
			want:   object{"a": object{"b": int64(1), "d": object{"e": "new"}}, "c": int64(2)},
		},
		"Scalar": {
			reason: "a text on the path is replaced",
			tree:   object{"a": "text"},
			path:   []string{"a", "b"},
			want:   object{"a": object{"b": "new"}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			vectors.Unchanged(t, tc.tree)
			if delta := cmp.Diff(tc.want, storage.WithValue(tc.tree, tc.path, "new")); delta != "" {
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
			reason: "a nil essence stays nil",
		},
		"Full": {
			reason:  "an essence without empty parts does not change",
			essence: object{"metadata": object{"labels": object{"a": "b"}}, "status": "x"},
			want:    object{"metadata": object{"labels": object{"a": "b"}}, "status": "x"},
		},
		"Emptied": {
			reason:  "metadata with empty labels and annotations is removed",
			essence: object{"metadata": object{"labels": object{}, "annotations": nil}, "spec": object{}},
			want:    object{"spec": object{}},
		},
		"OneOfTwo": {
			reason:  "metadata with another field stays",
			essence: object{"metadata": object{"labels": object{}, "finalizers": []any{}}},
			want:    object{"metadata": object{"finalizers": []any{}}},
		},
		"Null": {
			reason:  "null metadata and status are removed",
			essence: object{"metadata": nil, "status": nil}, want: object{},
		},
		"EmptyText": {reason: "a status of an empty text is removed", essence: object{"status": ""}, want: object{}},
		"EmptyList": {reason: "a status of an empty list is removed",
			essence: object{"status": []any{}}, want: object{}},
		"EmptyObject": {reason: "a status of an empty mapping is removed",
			essence: object{"status": object{}}, want: object{}},
		"Zero":      {reason: "a status of zero is removed", essence: object{"status": int64(0)}, want: object{}},
		"ZeroFloat": {reason: "a status of a float zero is removed", essence: object{"status": 0.0}, want: object{}},
		"False":     {reason: "a status of false is removed", essence: object{"status": false}, want: object{}},
		"Foreign": {
			reason: "a zero of a type outside of JSON stays", essence: object{"status": uint8(0)},
			want: object{"status": uint8(0)},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			vectors.Unchanged(t, tc.essence)
			if delta := cmp.Diff(tc.want, storage.TrimEssence(tc.essence)); delta != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, delta)
			}
		})
	}
}

func TestNothingToChangeAllocatesNothing(t *testing.T) {
	essence := object{"metadata": object{"labels": object{"a": "b"}}, "spec": object{"c": object{"d": int64(1)}}}
	if got := testing.AllocsPerRun(100, func() {
		if _, err := storage.WithoutValue(essence, []string{"spec", "c", "e"}); err != nil {
			t.Fatal(err)
		}
		storage.TrimEssence(essence)
	}); got != 0 {
		t.Errorf("got %v allocations, want none", got)
	}
}
