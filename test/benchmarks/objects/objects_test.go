package objects_test

import (
	"testing"

	"github.com/kopf-runtime/kopf-runtime/storage/diff"
	"github.com/kopf-runtime/kopf-runtime/test/benchmarks/objects"
)

// TestSizes requires the documented sizes of the objects, because figures depend on them.
func TestSizes(t *testing.T) {
	for _, tc := range []struct {
		object             objects.Object
		minBytes, maxBytes int
	}{{objects.CustomResource, 2000, 2100}, {objects.Pod, 2250, 2400}} {
		if got := len(tc.object.Text); got < tc.minBytes || got > tc.maxBytes {
			t.Errorf("%s has %d bytes of JSON, want %d to %d", tc.object.Name, got, tc.minBytes, tc.maxBytes)
		}
	}
	spec := objects.Pod.Tree()["spec"].(map[string]any)
	containers := spec["containers"].([]any)
	if len(containers) != 2 {
		t.Errorf("the Pod has %d containers, want 2", len(containers))
	}
	for _, container := range containers {
		if env := container.(map[string]any)["env"].([]any); len(env) != 15 {
			t.Errorf("a container has %d environment variables, want 15", len(env))
		}
	}
}

// TestChanged shows that Changed differs from Tree in one leaf, and that two trees are equal but not shared.
func TestChanged(t *testing.T) {
	for _, o := range objects.All {
		before := o.Tree()
		if !diff.Equal(before, o.Tree()) || len(diff.Compute(before, o.Changed())) != 1 {
			t.Errorf("%s: want two equal trees, and one difference", o.Name)
		}
		before["spec"].(map[string]any)["changed"] = true
		if diff.Equal(before, o.Tree()) {
			t.Errorf("%s: two trees must not share maps", o.Name)
		}
	}
}
