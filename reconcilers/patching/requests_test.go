package patching_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/patching"
)

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
		"UnguardedList": {
			reason: "A list that was not computed from the present one is good for any version.",
			fold:   true,
			patch:  patching.Patch{Merge: m{"spec": m{"l": []any{"b"}}}},
			want:   []string{`merge  {"spec":{"l":["b"]}}`},
		},
		"FoldedScalars": {
			reason: "So is what has no lists at all, on /status as well.",
			fold:   true,
			patch:  patching.Patch{Transforms: []patching.Transform{set([]string{"status", "s"}, int64(3))}},
			want:   []string{`merge /status {"status":{"s":3}}`},
		},
		"MappingOverList": {
			reason: "It removes a list, to which others may have added.",
			fold:   true,
			patch:  patching.Patch{Transforms: []patching.Transform{set([]string{"spec", "l"}, m{"a": "b"})}},
			want:   []string{`merge  {"metadata":{"resourceVersion":"100"},"spec":{"l":{"a":"b"}}}`},
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
			writer := patching.Writer{Client: api.client(), FieldManager: "tester", Guarded: tc.guarded, Fold: tc.fold}
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
