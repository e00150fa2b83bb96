package patching_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
	"github.com/kopf-runtime/kopf-runtime/internal/patching"
)

// TestApplyRetrying shows that a conflict is retried on the fresh object, in up to five attempts.
func TestApplyRetrying(t *testing.T) {
	type m = map[string]any
	finalizer := patching.Patch{Transforms: []patching.Transform{patching.BlockDeletion("own")}}
	others := func(n int) []any { // changes before each of the first n writes
		var out []any
		for i := range n {
			out = append(out, m{"spec": m{"z": int64(i)}})
		}
		return out
	}
	cases := map[string]struct {
		reason   string
		patch    patching.Patch
		serve    func(api *server)
		class    error
		text     string
		gone     bool
		remains  bool
		requests int
		reads    int
		written  bool // whether the finalizer was added
	}{
		"NeverEnds": {
			reason: "After five conflicts the patch is left to a later pass, as the remaining patch.",
			patch:  finalizer, serve: func(api *server) { api.interferences = others(9) },
			class: patching.ErrConflict, remains: true, requests: 5, reads: 4,
		},
		"BusyServer": {
			reason: "A 409 with the present version is retried as a conflict: " +
				"the server may have lost races itself.",
			patch: finalizer,
			serve: func(api *server) {
				api.failures = []any{int64(409), int64(409), int64(409), int64(409), int64(409), int64(409)}
			},
			class: patching.ErrConflict, remains: true, requests: 5, reads: 4,
		},
		"RecreatedMeanwhile": {
			reason: "An object that was replaced does not get the patch of the former one.",
			patch:  finalizer,
			serve:  func(api *server) { api.interferences = []any{m{"metadata": m{"uid": "uid2"}}} },
			class:  patching.ErrReplaced, text: "uid uid1, now uid2", requests: 1, reads: 1,
		},
		"GoneMeanwhile": {
			reason: "An object that was deleted after a conflict is gone, without an error.",
			patch:  finalizer,
			serve: func(api *server) {
				api.failures, api.interfere = []any{int64(409)}, func(int) { api.vanish() }
			},
			gone: true, requests: 1, reads: 1,
		},
		"ReadFails": {
			reason: "A failed read after a conflict is returned as the error.",
			patch:  finalizer, serve: func(api *server) { api.interferences, api.failGet = others(1), 500 },
			text: "reading kopf.dev/v1 KopfExample ns1/kex1 again after a conflict: ", requests: 1, reads: 1,
		},
		"Refused": {
			reason: "A refusal is not retried.",
			patch:  finalizer,
			serve:  func(api *server) { api.failures = []any{memapi.NewRefusal(422, "metadata.finalizers")} },
			class:  patching.ErrRefused, requests: 1,
		},
		"SecondAttempt": {
			reason: "The functions run again on the fresh body.",
			patch:  finalizer, serve: func(api *server) { api.interferences = others(1) },
			requests: 2, reads: 1, written: true,
		},
		"FourthAttempt": {
			reason: "Each attempt starts from the body that was read last.",
			patch:  finalizer, serve: func(api *server) { api.interferences = others(3) },
			requests: 4, reads: 3, written: true,
		},
		"DoneByOthers": {
			reason:   "If the fresh body already has the change, nothing is sent.",
			patch:    finalizer,
			serve:    func(api *server) { api.interferences = []any{m{"metadata": m{"finalizers": []any{"own"}}}} },
			requests: 1, reads: 1, written: true,
		},
		"StatusIsNotRepeated": {
			reason: "A status that was written before the conflict is not written again.",
			patch: patching.Patch{
				Merge:      m{"status": m{"b": int64(2)}},
				Transforms: []patching.Transform{patching.BlockDeletion("own"), set([]string{"status", "s"}, int64(2))},
			},
			serve:    func(api *server) { api.interferences = []any{nil, m{"spec": m{"z": "z"}}} },
			requests: 3, reads: 1, written: true,
		},
		"RefusedStatusIsNotForgotten": {
			reason: "A refused status is reported although a later attempt writes no status.",
			patch:  patching.Patch{Merge: m{"status": m{"b": int64(2)}}, Transforms: finalizer.Transforms},
			serve: func(api *server) {
				api.failures = []any{memapi.NewRefusal(422, "status.b")}
				api.interferences = []any{nil, m{"spec": m{"z": "z"}}}
			},
			requests: 3, reads: 1, written: true,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			api := serverOf(object())
			tc.serve(api)
			target := patching.Target{Body: object(), StatusSubresource: true}
			result, err := writerFor(api).ApplyRetrying(t.Context(), target, tc.patch)
			if failed := tc.class != nil || tc.text != ""; failed != (err != nil) {
				t.Fatalf("%s\nunexpected error: %v", tc.reason, err)
			}
			checkClass(t, tc.reason, tc.class, err)
			if err != nil && !strings.Contains(err.Error(), tc.text) {
				t.Errorf("%s\nwant %q in the error: %v", tc.reason, tc.text, err)
			}
			got := []any{
				len(api.writes()), api.reads(), result.Gone, !result.Remaining.IsEmpty(),
				patching.HasFinalizer(api.stored(), "own"),
			}
			if diff := cmp.Diff([]any{tc.requests, tc.reads, tc.gone, tc.remains, tc.written}, got); diff != "" {
				t.Errorf("%s\nrequests, reads, gone, remaining, written: -want, +got:\n%s", tc.reason, diff)
			}
			if (result.StatusRefusal != nil) != (name == "RefusedStatusIsNotForgotten") {
				t.Errorf("%s\nrefused status: %v", tc.reason, result.StatusRefusal)
			}
		})
	}
}

// TestRemainingMerge shows which part of a patch remains after a conflict.
func TestRemainingMerge(t *testing.T) {
	type m = map[string]any
	p := patching.Patch{
		Merge:      m{"status": m{"b": int64(2)}, "spec": m{"n": int64(2)}},
		Transforms: []patching.Transform{patching.BlockDeletion("own")},
	}
	cases := map[string]struct {
		reason string
		others []any
		want   m
	}{
		"BeforeStatus": {
			reason: "A conflict of the status leaves the whole patch.",
			others: []any{m{"spec": m{"z": "z"}}}, want: m{
				"status": m{"b": int64(2)}, "spec": m{"n": int64(2)},
			},
		},
		"BeforeMain": {
			reason: "A conflict of the main resource leaves the patch without the status.",
			others: []any{nil, m{"spec": m{"z": "z"}}}, want: m{"spec": m{"n": int64(2)}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			api := serverOf(object())
			api.interferences = tc.others
			result, err := writerFor(
				api,
			).Apply(t.Context(), patching.Target{Body: object(), StatusSubresource: true}, p)
			checkClass(t, tc.reason, patching.ErrConflict, err)
			if diff := cmp.Diff(tc.want, result.Remaining.Merge); diff != "" || len(result.Remaining.Transforms) != 1 {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
