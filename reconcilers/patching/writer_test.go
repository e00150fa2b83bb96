package patching_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/patching"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

var kex = schema.GroupVersionKind{Group: "kopf.dev", Version: "v1", Kind: "KopfExample"}

// object is what the handlers saw; a server with it is at the same version.
func object() map[string]any {
	return map[string]any{
		"apiVersion": "kopf.dev/v1", "kind": "KopfExample",
		"metadata": map[string]any{
			"name": "kex1", "namespace": "ns1", "uid": "uid1", "resourceVersion": "100",
			"annotations": map[string]any{"note": "old"}, "finalizers": []any{"x"},
		},
		"spec": map[string]any{
			"n": int64(1), "l": []any{"a"},
			"deep": map[string]any{"a": map[string]any{"b": "B", "c": "C"}, "d": "D"},
		},
		"status": map[string]any{"s": int64(1)},
	}
}

// engineWriter is the Writer as the engine has it.
func engineWriter(t *testing.T, api *server) *patching.Writer {
	t.Helper()
	return &patching.Writer{Client: api.client(t), FieldManager: "tester", Guarded: true, Fold: true}
}

// annotate is a merge-patch that needs no version, with a status beside it if that is wanted.
func annotate(status map[string]any) map[string]any {
	merge := map[string]any{"metadata": map[string]any{"annotations": map[string]any{"note": "new"}}}
	if status != nil {
		merge["status"] = status
	}
	return merge
}

func TestRequestsByForm(t *testing.T) {
	type m = map[string]any
	finalizer := []patching.Transform{patching.BlockDeletion("own")}
	everything := patching.Patch{
		Merge: annotate(m{"b": int64(2)}),
		Transforms: []patching.Transform{
			patching.BlockDeletion("own"), set([]string{"spec", "n"}, int64(2)), set([]string{"status", "s"}, int64(3)),
		},
	}
	cases := map[string]struct {
		reason  string
		guarded bool
		fold    bool
		patch   patching.Patch
		want    []string
	}{
		"GuardedMerge": {
			reason:  "The uid is enough for the main resource; /status, which ignores it, gets the version.",
			guarded: true, fold: true,
			patch: patching.Patch{Merge: annotate(m{"b": int64(2)})},
			want: []string{
				`merge /status {"metadata":{"resourceVersion":"100"},"status":{"b":2}}`,
				`merge  {"metadata":{"annotations":{"note":"new"},"uid":"uid1"}}`,
			},
		},
		"GuardedList": {
			reason:  "A merge-patch that replaces a list is good for one version only.",
			guarded: true,
			patch:   patching.Patch{Merge: m{"spec": m{"l": []any{"b"}}}},
			want:    []string{`merge  {"metadata":{"resourceVersion":"100","uid":"uid1"},"spec":{"l":["b"]}}`},
		},
		"GuardedListRemoval": {
			reason:  "So is one that removes what has a list in it.",
			guarded: true,
			patch:   patching.Patch{Merge: m{"spec": nil}},
			want:    []string{`merge  {"metadata":{"resourceVersion":"100","uid":"uid1"},"spec":null}`},
		},
		"PlainFinalizer": {
			reason: "Kopf's form: a JSON-patch with a test.",
			patch:  patching.Patch{Transforms: finalizer},
			want: []string{
				`json  [{"op":"test","path":"/metadata/resourceVersion","value":"100"},` +
					`{"op":"replace","path":"/metadata/finalizers","value":["x","own"]}]`,
			},
		},
		"FoldedFinalizer": {
			reason:  "Folded, it is a merge-patch as all others, with the version.",
			guarded: true, fold: true,
			patch: patching.Patch{Transforms: finalizer},
			want:  []string{`merge  {"metadata":{"finalizers":["x","own"],"resourceVersion":"100","uid":"uid1"}}`},
		},
		"FoldedFinalizerUnguarded": {
			reason: "The version is in it even if guards are not asked for: others' finalizers are at stake.",
			fold:   true,
			patch:  patching.Patch{Transforms: finalizer},
			want:   []string{`merge  {"metadata":{"finalizers":["x","own"],"resourceVersion":"100"}}`},
		},
		"FoldedUnguardedChain": {
			reason: "A version from an unguarded /status would not guard the list, so /status is guarded, too.",
			fold:   true, patch: everything,
			want: []string{
				`merge /status {"metadata":{"resourceVersion":"100"},"status":{"b":2,"s":3}}`,
				`merge  {"metadata":{"annotations":{"note":"new"},"finalizers":["x","own"],` +
					`"resourceVersion":"101"},"spec":{"n":2}}`,
			},
		},
		"FoldedEverything": {
			reason:  "Two requests at most, the second with the version that came of the first.",
			guarded: true, fold: true, patch: everything,
			want: []string{
				`merge /status {"metadata":{"resourceVersion":"100"},"status":{"b":2,"s":3}}`,
				`merge  {"metadata":{"annotations":{"note":"new"},"finalizers":["x","own"],` +
					`"resourceVersion":"101","uid":"uid1"},"spec":{"n":2}}`,
			},
		},
		"GuardedEverything": {
			reason:  "Kopf's four requests, with guards on the merge-patches.",
			guarded: true, patch: everything,
			want: []string{
				`merge /status {"metadata":{"resourceVersion":"100"},"status":{"b":2}}`,
				`merge  {"metadata":{"annotations":{"note":"new"},"uid":"uid1"}}`,
				`json /status ` +
					`[{"op":"test","path":"/metadata/resourceVersion","value":"102"},` +
					`{"op":"replace","path":"/status/s","value":3}]`,
				`json  [{"op":"test","path":"/metadata/resourceVersion","value":"103"},` +
					`{"op":"replace","path":"/metadata/finalizers","value":["x","own"]},` +
					`{"op":"replace","path":"/spec/n","value":2}]`,
			},
		},
		"FoldedNothing": {
			reason:  "Functions that change nothing send nothing.",
			guarded: true, fold: true,
			patch: patching.Patch{Transforms: []patching.Transform{patching.AllowDeletion("own")}},
		},
		"FoldedNullStatus": {
			reason:  "A null for the whole status is not sent, as in Kopf.",
			guarded: true, fold: true, patch: patching.Patch{Merge: m{"status": nil}},
		},
		"FoldedStatusRemoved": {
			reason:  "But a function may remove it.",
			guarded: true, fold: true,
			patch: patching.Patch{Transforms: []patching.Transform{remove([]string{"status"})}},
			want:  []string{`merge /status {"metadata":{"resourceVersion":"100"},"status":null}`},
		},
		"MergeOfTheSame": {
			reason:  "A merge-patch is sent even if the body has it all: the server may not, any more.",
			guarded: true, fold: true, patch: patching.Patch{Merge: m{"spec": m{"n": int64(1)}}},
			want: []string{`merge  {"metadata":{"uid":"uid1"},"spec":{"n":1}}`},
		},
		"RemovedThenRebuilt": {
			reason: "One patch must remove what two patches would have removed.",
			fold:   true,
			patch: patching.Patch{
				Merge:      m{"metadata": m{"annotations": nil}},
				Transforms: []patching.Transform{set([]string{"metadata", "annotations", "b"}, "B")},
			},
			want: []string{`merge  {"metadata":{"annotations":{"b":"B","note":null}}}`},
		},
		"RemovedThenRebuiltDeeply": {
			reason: "At any depth.",
			fold:   true,
			patch: patching.Patch{
				Merge:      m{"spec": m{"deep": nil}},
				Transforms: []patching.Transform{set([]string{"spec", "deep", "a", "b"}, "B")},
			},
			want: []string{`merge  {"spec":{"deep":{"a":{"b":"B","c":null},"d":null}}}`},
		},
		"FoldedListOfStatus": {
			reason: "A list of the status concerns /status alone.",
			fold:   true,
			patch: patching.Patch{
				Merge:      annotate(nil),
				Transforms: []patching.Transform{appendItem([]string{"status", "l"}, "a")},
			},
			want: []string{
				`merge /status {"metadata":{"resourceVersion":"100"},"status":{"l":["a"]}}`,
				`merge  {"metadata":{"annotations":{"note":"new"}}}`,
			},
		},
		"FoldedNilMap": {
			reason:  "A nil map is null in JSON, and that is absence in a merge-patch.",
			guarded: true, fold: true,
			patch: patching.Patch{Transforms: []patching.Transform{set([]string{"spec", "map"}, map[string]any(nil))}},
		},
		"NilListOverValue": {
			reason: "So is a nil list, also in Kopf's form.",
			patch:  patching.Patch{Transforms: []patching.Transform{set([]string{"spec", "n"}, []any(nil))}},
			want: []string{
				`json  [{"op":"test","path":"/metadata/resourceVersion","value":"100"},` +
					`{"op":"replace","path":"/spec/n","value":null}]`,
			},
		},
		"NotTheStatus": {
			reason: "Only the status itself belongs to /status, not what is named like it.",
			patch:  patching.Patch{Transforms: []patching.Transform{set([]string{"statusX"}, "x")}},
			want: []string{
				`json  [{"op":"test","path":"/metadata/resourceVersion","value":"100"},` +
					`{"op":"add","path":"/statusX","value":"x"}]`,
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			api, body := serverOf(object()), object()
			merge := encode(tc.patch.Merge)
			writer := patching.Writer{Client: api.client(t), FieldManager: "tester", Guarded: tc.guarded, Fold: tc.fold}
			result, err := writer.Apply(t.Context(), patching.Target{Body: body, StatusSubresource: true}, tc.patch)
			if err != nil {
				t.Fatalf("%s\nunexpected error: %v", tc.reason, err)
			}
			var got []string
			for _, sent := range api.writes() {
				_, suffix, _ := strings.Cut(sent.URL, "/kex1")
				got = append(got, fmt.Sprintf("%s %s %s", sent.Type, suffix, encode(sent.Payload)))
				if sent.Manager != "tester" {
					t.Errorf("%s\nthe field manager is missing in %v", tc.reason, sent)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
			if result.Requests != len(tc.want) {
				t.Errorf("%s\nwant %d requests counted, got %d", tc.reason, len(tc.want), result.Requests)
			}
			if len(tc.want) > 0 && !cmp.Equal(api.stored(), result.Body) {
				t.Errorf("%s\nthe last answer: -want, +got:\n%s", tc.reason, cmp.Diff(api.stored(), result.Body))
			}
			if diff := cmp.Diff(object(), body); diff != "" || string(merge) != string(encode(tc.patch.Merge)) {
				t.Errorf("%s\nan input was modified: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestReleased(t *testing.T) {
	cases := map[string]struct {
		reason   string
		metadata map[string]any
		want     bool
		left     bool
	}{
		"LastOne": {
			reason:   "The server deletes the object: its version will never be seen.",
			metadata: map[string]any{"deletionTimestamp": someTime}, want: true,
		},
		"ZeroGrace": {
			reason:   "A period of no seconds is over.",
			metadata: map[string]any{"deletionTimestamp": someTime, "deletionGracePeriodSeconds": int64(0)},
			want:     true,
		},
		"OthersLeft": {
			reason:   "Others still hold the object.",
			metadata: map[string]any{"deletionTimestamp": someTime, "finalizers": []any{"x", "own"}}, left: true,
		},
		"NotDeleting": {reason: "Nobody has asked for the deletion.", left: true},
		"Grace": {
			reason:   "A pod goes on until its period is over, and its version arrives.",
			metadata: map[string]any{"deletionTimestamp": someTime, "deletionGracePeriodSeconds": int64(30)},
			left:     true,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			body := object()
			body["metadata"].(map[string]any)["finalizers"] = []any{"own"}
			for key, value := range tc.metadata {
				body["metadata"].(map[string]any)[key] = value
			}
			api := serverOf(body)
			p := patching.Patch{Transforms: []patching.Transform{patching.AllowDeletion("own")}}
			result, err := engineWriter(t, api).Apply(t.Context(), patching.Target{Body: body}, p)
			if err != nil {
				t.Fatalf("%s\nunexpected error: %v", tc.reason, err)
			}
			if result.Released != tc.want || result.Gone {
				t.Errorf("%s\nwant released %v, got %v, gone %v", tc.reason, tc.want, result.Released, result.Gone)
			}
			if (api.stored() != nil) != tc.left {
				t.Errorf("%s\nthe object is left: %v", tc.reason, api.stored())
			}
		})
	}
}

// TestFormsAgree compares what arrives at the server by each form with what was meant.
func TestFormsAgree(t *testing.T) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 3))
		body := object()
		body["spec"], body["status"] = pruned(randomMapping(r, 3)), pruned(randomMapping(r, 3))
		replacement := mutated(r, body)
		p := patching.Patch{
			Merge: map[string]any{"spec": randomMapping(r, 3), "status": randomMapping(r, 3)},
			Transforms: []patching.Transform{func(body map[string]any) error {
				if seed%3 > 0 {
					body["spec"], body["status"] = pruned(orAny(replacement["spec"])), pruned(
						orAny(replacement["status"]),
					)
				}
				return nil
			}},
		}
		for form := range 8 {
			guarded, fold, subresource := form&1 > 0, form&2 > 0, form&4 > 0
			api := serverOf(body)
			api.serveStatus(subresource)
			writer := patching.Writer{Client: api.client(t), Guarded: guarded, Fold: fold}
			_, err := writer.Apply(t.Context(), patching.Target{Body: body, StatusSubresource: subresource}, p)
			if err != nil {
				t.Fatalf("seed %d, form %d: unexpected error: %v", seed, form, err)
			}
			want, err := p.ApplyTo(body)
			if err != nil {
				t.Fatalf("seed %d: unexpected error: %v", seed, err)
			}
			for _, key := range []string{"spec", "status"} {
				if !diff.Equal(pruned(want[key]), pruned(api.stored()[key])) {
					t.Fatalf("seed %d, form %d\nbody %s\npatch %s\n%s: -want, +got:\n%s", seed, form,
						encode(body), encode(p.Merge), key, cmp.Diff(pruned(want[key]), pruned(api.stored()[key])))
				}
			}
		}
	}
}

func orAny(value any) any {
	if value == nil {
		return map[string]any{}
	}
	return value
}

func TestNothingToWrite(t *testing.T) {
	api := serverOf(object())
	result, err := engineWriter(t, api).Apply(t.Context(), patching.Target{Body: object()}, patching.Patch{})
	if err != nil || result.Requests != 0 || result.Body != nil || len(api.writes()) != 0 {
		t.Errorf("an empty patch must send nothing: %+v, %v", result, err)
	}
}

func TestGet(t *testing.T) {
	api := serverOf(object())
	writer := engineWriter(t, api)
	if _, err := writer.Get(
		t.Context(), kex, client.ObjectKey{Namespace: "ns1", Name: "other"},
	); !apierrors.IsNotFound(err) {
		t.Errorf("an object that does not exist: want a 404, got %v", err)
	}
	body, err := writer.Get(t.Context(), kex, client.ObjectKey{Namespace: "ns1", Name: "kex1"})
	if err != nil {
		t.Fatalf("unexpected error: %v", err)
	}
	if diff := cmp.Diff(object(), body); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

func TestCancelledContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	api := serverOf(object())
	p := patching.Patch{Merge: annotate(map[string]any{"b": int64(2)})}
	result, err := engineWriter(t, api).Apply(ctx, patching.Target{Body: object(), StatusSubresource: true}, p)
	if err == nil || result.StatusRefused != nil || len(api.writes()) > 0 {
		t.Errorf("nothing was refused, and nothing may be written: %v, %+v", err, result)
	}
}
