package patching

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

func TestRestored(t *testing.T) {
	type object = map[string]any
	before := object{"spec": object{"enabled": true, "replicas": int64(3), "other": "x"}}
	for name, tc := range map[string]struct {
		reason        string
		patch, answer object
		want          []diff.Path
	}{
		"Defaults": {"the schema puts them back", object{"spec": object{"enabled": nil, "replicas": nil}}, before,
			[]diff.Path{{"spec", "enabled"}, {"spec", "replicas"}}},
		"Removed": {"no default", object{"spec": object{"other": nil}}, object{"spec": object{"enabled": true}}, nil},
		"Reset": {"a changed value is an effect", object{"spec": object{"replicas": nil}},
			object{"spec": object{"replicas": int64(1)}}, nil},
		"Absent": {"nothing was there", object{"spec": object{"none": nil}},
			object{"spec": object{"none": "x"}}, nil},
		"Metadata": {"the server maintains it", object{"metadata": object{"uid": nil}}, before, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if d := cmp.Diff(tc.want, restored(tc.patch, before, tc.answer)); d != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, d)
			}
		})
	}
}
