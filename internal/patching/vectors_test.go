package patching_test

import (
	"maps"
	"slices"
	"testing"

	evanphx "github.com/evanphx/json-patch/v5"
	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/internal/patching"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
	"github.com/kopf-runtime/kopf-runtime/test/vectors"
)

// sameJSON compares by type and value, as the vectors require: 1 equals 1.0.
func sameJSON(t *testing.T, what string, want, got any) {
	t.Helper()
	got = decode(encode(got))
	if !diff.Equal(want, got) {
		t.Errorf("%s: -want, +got:\n%s", what, cmp.Diff(want, got))
	}
}

const kopfFinalizer = "kopf.zalando.org/KopfFinalizerMarker"

// TestVectorsFinalizer compares the handling of finalizers with Kopf's.
func TestVectorsFinalizer(t *testing.T) {
	vectors.Run(t, "finalizer", func(t *testing.T, input vectors.Fields, want vectors.Expected) {
		vectors.Known(t, input, "body", "finalizer")
		body, name := input.Mapping("body"), input.Text("finalizer", kopfFinalizer)
		after := func(transform patching.Transform) any {
			out := decode(encode(body)).(map[string]any)
			if err := transform(out); err != nil {
				t.Fatalf("unexpected error: %v", err)
			}
			return out
		}
		sameJSON(t, "the finalizers", want.Value, map[string]any{
			"ongoing":     patching.IsBeingDeleted(body),
			"blocked":     patching.HasFinalizer(body, name),
			"after_block": after(patching.BlockDeletion(name)),
			"after_allow": after(patching.AllowDeletion(name)),
		})
	})
}

// TestVectorsResultsDelivery compares the storage of results with Kopf's.
func TestVectorsResultsDelivery(t *testing.T) {
	vectors.Run(t, "results_delivery", func(t *testing.T, input vectors.Fields, want vectors.Expected) {
		vectors.Known(t, input, "outcomes", "patch")
		p := patching.Patch{Merge: input.Mapping("patch")}
		outcomes := input.Mapping("outcomes")
		var err error
		for _, id := range slices.Sorted(maps.Keys(outcomes)) {
			outcome := vectors.Known(t, outcomes[id], "return", "error")
			// A failed attempt has no result: this rule belongs to the caller.
			if failed, _ := outcome["error"].(bool); !failed && err == nil {
				err = p.AddResult(id, outcome["return"])
			}
		}
		if want.Failed(t, p.Merge, err) {
			return
		}
		merge := p.Merge
		if merge == nil {
			merge = map[string]any{}
		}
		sameJSON(t, "the merge-patch", want.Value, map[string]any{"patch": merge})
	})
}

// TestVectorsJSONPatch compares the effect of JSON patches with Kopf's.
func TestVectorsJSONPatch(t *testing.T) {
	vectors.Run(t, "json_patch", func(t *testing.T, input vectors.Fields, want vectors.Expected) {
		vectors.Known(t, input, "body", "patch", "fns")
		body := input.Mapping("body")
		before := encode(body)
		ops, err := patching.AdmissionOps(body, patching.Patch{
			Merge: input.Mapping("patch"), Transforms: transformsOf(t, input.List("fns")),
		})
		if want.Failed(t, ops, err) {
			return
		}
		expected := vectors.Known(t, want.Value, "ops", "result", "body_unchanged")
		if len(expected.List("ops")) == 0 && len(ops) != 0 {
			t.Errorf("want no operations, got %v", ops)
		}
		result := before
		if len(ops) > 0 {
			patch, err := evanphx.DecodePatch(encode(ops))
			if err != nil {
				t.Fatalf("not a JSON-patch: %v", err)
			}
			if result, err = patch.Apply(before); err != nil {
				t.Fatalf("the operations do not apply: %v", err)
			}
		}
		sameJSON(t, "the resulting body", expected["result"], decode(result))
		sameJSON(t, "the body is unchanged", expected["body_unchanged"], string(before) == string(encode(body)))
	})
}
