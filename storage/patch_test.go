package storage_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/storage"
)

func TestPut(t *testing.T) {
	cases := map[string]struct {
		reason string
		patch  object
		path   []string
		want   object
		fails  bool
	}{
		"Root": {
			reason: "a value cannot replace the whole patch",
			patch:  object{},
			want:   object{},
			fails:  true,
		},
		"Scalar": {
			reason: "a text on the path is not overwritten by a mapping",
			patch:  object{"a": object{"b": "text"}},
			path:   []string{"a", "b", "c"},
			want:   object{"a": object{"b": "text"}},
			fails:  true,
		},
		"Null": {
			reason: "a null on the path is not overwritten, as this would restore the rest of the mapping",
			patch:  object{"a": nil},
			path:   []string{"a", "b"},
			want:   object{"a": nil},
			fails:  true,
		},
		"New": {
			reason: "missing mappings on the path are created",
			patch:  object{"x": int64(1)},
			path:   []string{"a", "b", "c"},
			want:   object{"x": int64(1), "a": object{"b": object{"c": "new"}}},
		},
		"Beside": {
			reason: "other values of the mapping stay",
			patch:  object{"a": object{"b": int64(1)}},
			path:   []string{"a", "c"},
			want:   object{"a": object{"b": int64(1), "c": "new"}},
		},
		"NilMapping": {
			reason: "a nil mapping on the path is replaced by a new one",
			patch:  object{"a": object(nil)},
			path:   []string{"a", "c"},
			want:   object{"a": object{"c": "new"}},
		},
		"Over": {
			reason: "an existing value at the path is replaced",
			patch:  object{"a": nil},
			path:   []string{"a"},
			want:   object{"a": "new"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := storage.PutValue(tc.patch, tc.path, "new")
			if (err != nil) != tc.fails {
				t.Fatalf("%s\ngot error %v, want one: %v", tc.reason, err, tc.fails)
			}
			if delta := cmp.Diff(tc.want, tc.patch); delta != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, delta)
			}
		})
	}
}

func TestDrop(t *testing.T) {
	cases := map[string]struct {
		reason string
		patch  object
		path   []string
		want   object
	}{
		"Root": {reason: "an empty path drops nothing", patch: object{"a": int64(1)}, want: object{"a": int64(1)}},
		"Absent": {
			reason: "a missing key drops nothing", patch: object{"a": object{"b": int64(1)}}, path: []string{"a", "c"},
			want: object{"a": object{"b": int64(1)}},
		},
		"Scalar": {
			reason: "a path into a text drops nothing", patch: object{"a": "text"}, path: []string{"a", "b"},
			want: object{"a": "text"},
		},
		"Empty": {
			reason: "an empty mapping that another writer set is kept",
			patch:  object{"a": object{}}, path: []string{"a", "b"},
			want: object{"a": object{}},
		},
		"Last": {
			reason: "mappings that become empty are dropped, too", patch: object{"a": object{"b": object{"c": nil}}},
			path: []string{"a", "b", "c"}, want: object{},
		},
		"Other": {
			reason: "other values of the mapping stay", patch: object{"a": object{"b": int64(1), "c": int64(2)}},
			path: []string{"a", "b"}, want: object{"a": object{"c": int64(2)}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			storage.DropValue(tc.patch, tc.path)
			if delta := cmp.Diff(tc.want, tc.patch); delta != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, delta)
			}
		})
	}
}

func TestLeaves(t *testing.T) {
	cases := map[string]struct {
		reason string
		patch  object
		want   object
	}{
		"Empty": {reason: "an empty patch has no leaves", patch: object{}, want: object{}},
		"Mapping": {
			reason: "an empty mapping is not a leaf", patch: object{"a": object{"b": object{}}}, want: object{},
		},
		"Removal": {reason: "a null is a leaf", patch: object{"a": object{"b": nil}}, want: object{"/a/b": nil}},
		"List": {
			reason: "a list is one leaf", patch: object{"a": []any{object{"b": "c"}}},
			want: object{"/a": []any{object{"b": "c"}}},
		},
		"Escaped": {
			reason: "slashes and tildes of keys are escaped",
			patch:  object{"a/b": "x", "a": object{"b": "y"}, "a~1b": "z"},
			want:   object{"/a~1b": "x", "/a/b": "y", "/a~01b": "z"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if delta := cmp.Diff(tc.want, storage.PatchLeaves(tc.patch)); delta != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, delta)
			}
		})
	}
}
