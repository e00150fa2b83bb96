package vectors_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/test/vectors"
)

func TestEdit(t *testing.T) {
	type m = map[string]any
	for name, tc := range map[string]struct {
		reason     string
		edit       vectors.Fields
		body, want m
		wantErr    bool
	}{
		"set": {
			"mappings on the way are made", vectors.Fields{"fn": "set", "path": "a.b", "value": 1}, m{},
			m{"a": m{"b": 1}}, false,
		},
		"set by keys": {
			"keys may have dots", vectors.Fields{"fn": "set", "path": []any{"a.b"}, "value": 1}, m{}, m{"a.b": 1},
			false,
		},
		"set in a scalar": {
			"there is no such place", vectors.Fields{"fn": "set", "path": "a.b", "value": 1}, m{"a": 5}, m{"a": 5},
			true,
		},
		"remove": {
			"the key goes", vectors.Fields{"fn": "remove", "path": "a"}, m{"a": 1, "b": 2}, m{"b": 2}, false,
		},
		"remove nothing": {"nothing is made", vectors.Fields{"fn": "remove", "path": "a.b"}, m{}, m{}, false},
		"append": {
			"a list is made", vectors.Fields{"fn": "append", "path": "l", "value": 1}, m{}, m{"l": []any{1}}, false,
		},
		"append again": {
			"an item that the list contains is not appended again", vectors.Fields{"fn": "append", "path": "l",
				"value": 1},
			m{"l": []any{1}}, m{"l": []any{1}}, false,
		},
		"append to a scalar": {
			"appending to a scalar is an error", vectors.Fields{"fn": "append", "path": "l",
				"value": 1}, m{"l": 5}, m{"l": 5}, true,
		},
		"del_item": {
			"the item goes", vectors.Fields{"fn": "del_item", "path": "l", "value": 1}, m{"l": []any{2, 1}},
			m{"l": []any{2}}, false,
		},
		"del_item not there": {
			"nothing goes", vectors.Fields{"fn": "del_item", "path": "l", "value": 1}, m{"l": []any{2}},
			m{"l": []any{2}}, false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			edit, err := vectors.Edit(tc.edit)
			if err != nil {
				t.Fatal(err)
			}
			if err := edit(tc.body); (err != nil) != tc.wantErr {
				t.Errorf("%s: got error %v, want one: %v", tc.reason, err, tc.wantErr)
			}
			if delta := cmp.Diff(tc.want, tc.body); delta != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, delta)
			}
		})
	}
	for _, unknown := range []vectors.Fields{{"fn": "shuffle", "path": "a"}, {"fn": "set"}} {
		if _, err := vectors.Edit(unknown); err == nil {
			t.Errorf("an unknown edit is an error: %v", unknown)
		}
	}
}
