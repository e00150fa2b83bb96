package storage_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/storage"
)

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
