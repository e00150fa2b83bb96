package patching_test

import (
	"maps"
	"slices"
	"testing"

	evanphx "github.com/evanphx/json-patch/v5"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/patching"
)

const kopfFinalizer = "kopf.zalando.org/KopfFinalizerMarker"

func TestVectorsFinalizer(t *testing.T) {
	runVectors(t, "finalizer", func(t *testing.T, v vector) {
		input := known(t, v.input, "body", "finalizer")
		body, name := input.mapping("body"), input.text("finalizer", kopfFinalizer)
		after := func(transform patching.Transform) any {
			out := decode(encode(body)).(map[string]any)
			if err := transform(out); err != nil {
				t.Fatalf("unexpected error: %v", err)
			}
			return out
		}
		sameJSON(t, "the finalizers", v.want, map[string]any{
			"ongoing":     patching.BeingDeleted(body),
			"blocked":     patching.HasFinalizer(body, name),
			"after_block": after(patching.BlockDeletion(name)),
			"after_allow": after(patching.AllowDeletion(name)),
		})
	})
}

func TestVectorsResultsDelivery(t *testing.T) {
	runVectors(t, "results_delivery", func(t *testing.T, v vector) {
		input := known(t, v.input, "outcomes", "patch")
		p := patching.Patch{Merge: input.mapping("patch")}
		outcomes := input.mapping("outcomes")
		var err error
		for _, id := range slices.Sorted(maps.Keys(outcomes)) {
			outcome := known(t, outcomes[id], "return", "error")
			// Whose attempt has failed is not asked for a result: that rule is the caller's.
			if failed, _ := outcome["error"].(bool); !failed && err == nil {
				err = p.AddResult(id, outcome["return"])
			}
		}
		if v.wantsError() {
			if err == nil {
				t.Fatal("an error is expected")
			}
			return
		}
		if err != nil {
			t.Fatalf("unexpected error: %v", err)
		}
		merge := p.Merge
		if merge == nil {
			merge = map[string]any{}
		}
		sameJSON(t, "the merge-patch", v.want, map[string]any{"patch": merge})
	})
}

func TestVectorsJSONPatch(t *testing.T) {
	runVectors(t, "json_patch", func(t *testing.T, v vector) {
		input := known(t, v.input, "body", "patch", "fns")
		body := input.mapping("body")
		before := encode(body)
		ops, err := patching.AdmissionOps(body, patching.Patch{
			Merge: input.mapping("patch"), Transforms: transformsOf(t, input.list("fns")),
		})
		if v.wantsError() {
			if err == nil {
				t.Fatalf("an error is expected, not %v", ops)
			}
			return
		}
		if err != nil {
			t.Fatalf("unexpected error: %v", err)
		}
		want := known(t, v.want, "ops", "result", "body_unchanged")
		if expected := want.list("ops"); len(expected) == 0 && len(ops) != 0 {
			t.Errorf("no operations are expected, not %v", ops)
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
		sameJSON(t, "the resulting body", want["result"], decode(result))
		sameJSON(t, "the body is left alone", want["body_unchanged"], string(before) == string(encode(body)))
	})
}
