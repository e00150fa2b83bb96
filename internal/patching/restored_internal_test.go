package patching

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

// TestRestored shows that removed fields that the schema restores are found.
func TestRestored(t *testing.T) {
	type object = map[string]any
	before := object{"spec": object{"enabled": true, "replicas": int64(3), "other": "x"}}
	for name, tc := range map[string]struct {
		reason        string
		patch, answer object
		want          []diff.Path
	}{
		"Defaults": {"removed fields that return with their former value are reported",
			object{"spec": object{"enabled": nil, "replicas": nil}}, before,
			[]diff.Path{{"spec", "enabled"}, {"spec", "replicas"}}},
		"Removed": {"removed fields that stay removed are not reported",
			object{"spec": object{"other": nil}}, object{"spec": object{"enabled": true}}, nil},
		"Reset": {"a removed field that gets another value is not reported", object{"spec": object{"replicas": nil}},
			object{"spec": object{"replicas": int64(1)}}, nil},
		"Absent": {"a field that did not exist before is not reported", object{"spec": object{"none": nil}},
			object{"spec": object{"none": "x"}}, nil},
		"Metadata": {"metadata are not reported, as the server maintains them",
			object{"metadata": object{"uid": nil}}, before, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if d := cmp.Diff(tc.want, restoredFields(tc.patch, before, tc.answer)); d != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, d)
			}
		})
	}
}
