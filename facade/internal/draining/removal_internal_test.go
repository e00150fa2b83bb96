package draining

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

type tree = map[string]any

// TestRemoval shows that a removal has only places that the body has, that it removes mappings that become empty, and
// that it names all places for people.
func TestRemoval(t *testing.T) {
	body := tree{
		"metadata": tree{
			"name": "one", "annotations": tree{"a/x": "1", "a/y": "2"}, "labels": tree{"b/z": "3", "c": ""},
		},
		"spec": tree{"size": int64(1)}, "status": tree{"own": tree{"deep": tree{"value": int64(1)}}},
	}
	for name, c := range map[string]struct {
		reason string
		places tree
		patch  tree
		names  []string
	}{
		"nothing": {"an absent place is not removed", tree{"metadata": tree{"annotations": tree{"a/other": nil}}},
			tree{}, nil},
		"other type": {"a place in a value that is not a mapping is not removed",
			tree{"spec": tree{"size": tree{"of": nil}}}, tree{}, nil},
		"written": {"a place that a patch writes is not removed", tree{"spec": tree{"size": int64(2)}}, tree{}, nil},
		"some": {"other values of a mapping stay",
			tree{"metadata": tree{"annotations": tree{"a/x": nil}, "labels": tree{"b/z": nil}}},
			tree{"metadata": tree{"annotations": tree{"a/x": nil}, "labels": tree{"b/z": nil}}},
			[]string{"annotation a/x", "label b/z"}},
		"all": {"a mapping that becomes empty is removed", tree{
			"metadata": tree{"annotations": tree{"a/x": nil, "a/y": nil}}, "status": tree{"own": tree{"deep": nil}},
		}, tree{"metadata": tree{"annotations": nil}, "status": nil},
			[]string{"annotation a/x", "annotation a/y", "field status.own.deep"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := removal{}
			r.addPlaces(c.places, body, nulls)
			r.addPlaces(c.places, body, nulls) // a place can be found twice
			if diff := cmp.Diff(c.patch, r.pruned(body)); diff != "" {
				t.Errorf("%s (-want, +got):\n%s", c.reason, diff)
			}
			if diff := cmp.Diff(c.names, r.listPlaces()); diff != "" {
				t.Errorf("%s: names (-want, +got):\n%s", c.reason, diff)
			}
		})
	}
}

// TestMissingIn shows which places count as cleared: those with a value that the other tree does not have.
func TestMissingIn(t *testing.T) {
	body := tree{
		"spec": tree{"size": int64(1)}, "empty": tree{}, "null": nil,
		"status": tree{"own": tree{"a": "b"}, "other": "c", "left": tree{}},
	}
	want := tree{"status": tree{"own": nil}}
	cleared := tree{"spec": tree{"size": int64(1)}, "status": tree{"other": "c"}}
	if diff := cmp.Diff(want, missingIn(cleared, body)); diff != "" {
		t.Errorf("empty values do not count (-want, +got):\n%s", diff)
	}
}
