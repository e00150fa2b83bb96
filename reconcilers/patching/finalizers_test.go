package patching_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/patching"
)

func TestFinalizersOfOddBodies(t *testing.T) {
	finalizers := func(items ...any) map[string]any {
		return map[string]any{"metadata": map[string]any{"finalizers": items}}
	}
	cases := map[string]struct {
		reason    string
		body      map[string]any
		transform patching.Transform
		want      map[string]any
	}{
		"BlockWithoutMetadata": {
			reason: "A body without metadata gets them.",
			body:   map[string]any{}, transform: patching.BlockDeletion("own"), want: finalizers("own"),
		},
		"BlockTwice": {
			reason: "It runs again after a conflict, so it must not add a second one.",
			body:   finalizers("own", "x"), transform: patching.BlockDeletion("own"), want: finalizers("own", "x"),
		},
		"BlockOverNull": {
			reason: "A null is as good as no list.",
			body: map[string]any{
				"metadata": map[string]any{"finalizers": nil},
			}, transform: patching.BlockDeletion("own"), want: finalizers("own"),
		},
		"AllowWithoutMetadata": {
			reason: "There is nothing to remove.",
			body:   map[string]any{}, transform: patching.AllowDeletion("own"), want: map[string]any{},
		},
		"AllowAllOccurrences": {
			reason: "One left behind would hold the object for ever.",
			body:   finalizers("own", "x", "own"), transform: patching.AllowDeletion("own"), want: finalizers("x"),
		},
		"AllowTheOnlyOnes": {
			reason: "An emptied list goes with its key.",
			body:   finalizers("own", "own"), transform: patching.AllowDeletion("own"), want: map[string]any{},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			body := decode(encode(tc.body)).(map[string]any)
			if err := tc.transform(body); err != nil {
				t.Fatalf("%s\nunexpected error: %v", tc.reason, err)
			}
			if diff := cmp.Diff(tc.want, body); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestHasFinalizer(t *testing.T) {
	cases := map[string]struct {
		reason string
		body   map[string]any
		want   bool
	}{
		"NilBody": {reason: "No body, no finalizer."},
		"NotAList": {
			reason: "A malformed list is no list.",
			body:   map[string]any{"metadata": map[string]any{"finalizers": "own"}},
		},
		"Oddities": {
			reason: "Items of other types are passed over.",
			body:   map[string]any{"metadata": map[string]any{"finalizers": []any{int64(1), "own"}}}, want: true,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := patching.HasFinalizer(tc.body, "own"); got != tc.want {
				t.Errorf("%s\nwant %v, got %v", tc.reason, tc.want, got)
			}
			if patching.BeingDeleted(tc.body) {
				t.Errorf("%s\nnobody has requested the deletion", tc.reason)
			}
		})
	}
}
