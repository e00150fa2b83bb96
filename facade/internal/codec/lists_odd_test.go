package codec_test

import (
	"testing"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/codec"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

func TestOddListItems(t *testing.T) {
	one, two := int64(1), int64(2)
	for name, tc := range map[string]listCase{
		"NullAmongNamed": {
			reason: "a null is an item without a name, and named items keep their fields", field: "named",
			items:  []any{object{"name": "a", "novel": one}, nil, object{"name": "b", "novel": two}},
			change: func(s *listingSpec) { s.Named[2].Size = 9; s.Named = s.Named[1:] },
			want:   []any{nil, object{"name": "b", "novel": two, "size": int64(9)}},
		},
		"NamedTwiceBefore": {
			reason: "a duplicate name identifies nothing, so the position counts", field: "named",
			items:  []any{object{"name": "a", "novel": one}, object{"name": "a", "novel": two}},
			change: func(s *listingSpec) { s.Named[1].Size = 9 },
			want: []any{
				object{"name": "a", "novel": one}, object{"name": "a", "novel": two, "size": int64(9)},
			},
		},
		"NamedTwiceAndRemoved": {
			reason: "the fields are lost if one of two items with the same name is removed", field: "named",
			items:  []any{object{"name": "a", "novel": one}, object{"name": "a", "novel": two}},
			change: func(s *listingSpec) { s.Named = []named{{Name: "a", Size: 9}} },
			want:   []any{object{"name": "a", "size": int64(9)}}, lost: []string{"spec.named.novel"},
		},
		"Emptied": {
			reason: "an emptied list does not keep anything", field: "named",
			items: []any{object{"name": "a", "novel": one}}, change: func(s *listingSpec) { s.Named = nil },
		},
		"OddSchema": {
			reason: "the type identifies an item if the schema has no keys", field: "typed",
			items:  []any{object{"type": "a", "novel": one}, object{"type": "b", "novel": two}},
			change: func(s *listingSpec) { s.Typed[1].Size = 9; s.Typed = s.Typed[1:] },
			want:   []any{object{"type": "b", "novel": two, "size": int64(9)}},
		},
		"DeepFields": {
			reason: "nested values of unknown fields stay whole", field: "named",
			items: []any{
				object{"name": "a", "novel": object{"list": []any{object{"name": "x"}, nil}}},
				object{"name": "b", "novel": []any{[]any{one}, object{}}},
			},
			change: func(s *listingSpec) { s.Named[0], s.Named[1] = s.Named[1], s.Named[0]; s.Named[1].Size = 9 },
			want: []any{
				object{"name": "b", "novel": []any{[]any{one}, object{}}},
				object{"name": "a", "novel": object{"list": []any{object{"name": "x"}, nil}}, "size": int64(9)},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.want == nil {
				got := changeList(t, tc.field, tc.items, tc.change, codec.Lists{
					Keys: func(diff.Path) []string { return []string{"nothing", "at all"} },
				})
				if got != nil {
					t.Errorf("%s: got %v", tc.reason, got)
				}
				return
			}
			tc.run(t)
		})
	}
}
