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
			reason: "A patch is not replaced by a value.",
			patch:  object{},
			want:   object{},
			fails:  true,
		},
		"Scalar": {
			reason: "Somebody else's value is not overwritten by a mapping.",
			patch:  object{"a": object{"b": "text"}},
			path:   []string{"a", "b", "c"},
			want:   object{"a": object{"b": "text"}},
			fails:  true,
		},
		"Null": {
			reason: "The patch removes the whole place: putting something there would revive the rest of it.",
			patch:  object{"a": nil},
			path:   []string{"a", "b"},
			want:   object{"a": nil},
			fails:  true,
		},
		"New": {
			reason: "The mappings on the way are made.",
			patch:  object{"x": int64(1)},
			path:   []string{"a", "b", "c"},
			want:   object{"x": int64(1), "a": object{"b": object{"c": "new"}}},
		},
		"Beside": {
			reason: "What is there stays.",
			patch:  object{"a": object{"b": int64(1)}},
			path:   []string{"a", "c"},
			want:   object{"a": object{"b": int64(1), "c": "new"}},
		},
		"NilMapping": {
			reason: "A nil mapping is an empty one, but nothing can be put into it.",
			patch:  object{"a": object(nil)},
			path:   []string{"a", "c"},
			want:   object{"a": object{"c": "new"}},
		},
		"Over": {
			reason: "The last word counts.",
			patch:  object{"a": nil},
			path:   []string{"a"},
			want:   object{"a": "new"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := storage.Put(tc.patch, tc.path, "new")
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
		"Root": {reason: "There is no key to drop.", patch: object{"a": int64(1)}, want: object{"a": int64(1)}},
		"Absent": {
			reason: "There is nothing to drop.", patch: object{"a": object{"b": int64(1)}}, path: []string{"a", "c"},
			want: object{"a": object{"b": int64(1)}},
		},
		"Scalar": {
			reason: "Nothing is inside of it.", patch: object{"a": "text"}, path: []string{"a", "b"},
			want: object{"a": "text"},
		},
		"Empty": {
			reason: "Somebody else wants it to be empty.", patch: object{"a": object{}}, path: []string{"a", "b"},
			want: object{"a": object{}},
		},
		"Last": {
			reason: "No trace is left.", patch: object{"a": object{"b": object{"c": nil}}},
			path: []string{"a", "b", "c"}, want: object{},
		},
		"Other": {
			reason: "Others' changes stay.", patch: object{"a": object{"b": int64(1), "c": int64(2)}},
			path: []string{"a", "b"}, want: object{"a": object{"c": int64(2)}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			storage.Drop(tc.patch, tc.path)
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
		"Empty": {reason: "Nothing is written.", patch: object{}, want: object{}},
		"Mapping": {
			reason: "An empty mapping leaves what is there.", patch: object{"a": object{"b": object{}}}, want: object{},
		},
		"Removal": {reason: "To remove is to write.", patch: object{"a": object{"b": nil}}, want: object{"/a/b": nil}},
		"List": {
			reason: "A list is replaced as a whole.", patch: object{"a": []any{object{"b": "c"}}},
			want: object{"/a": []any{object{"b": "c"}}},
		},
		"Escaped": {
			reason: "Two keys are never taken for one.", patch: object{"a/b": "x", "a": object{"b": "y"}, "a~1b": "z"},
			want: object{"/a~1b": "x", "/a/b": "y", "/a~01b": "z"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if delta := cmp.Diff(tc.want, storage.Leaves(tc.patch)); delta != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, delta)
			}
		})
	}
}
