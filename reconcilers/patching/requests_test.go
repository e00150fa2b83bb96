package patching_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/patching"
)

func TestRequests(t *testing.T) {
	type m = map[string]any
	finalizer := []patching.Transform{patching.BlockDeletion("own")}
	everything := patching.Patch{
		Merge: annotate(m{"b": int64(2)}),
		Transforms: []patching.Transform{
			patching.BlockDeletion("own"), set([]string{"spec", "n"}, int64(2)), set([]string{"status", "s"}, int64(3)),
		},
	}
	cases := map[string]struct {
		reason string
		patch  patching.Patch
		want   []string
	}{
		"Merge": {
			reason: "The uid is enough for the main resource; /status, which ignores it, gets the version.",
			patch:  patching.Patch{Merge: annotate(m{"b": int64(2)})},
			want: []string{
				`merge /status {"metadata":{"resourceVersion":"100"},"status":{"b":2}}`,
				`merge  {"metadata":{"annotations":{"note":"new"},"uid":"uid1"}}`,
			},
		},
		"List": {
			reason: "A merge-patch that replaces a list is good for one version only.",
			patch:  patching.Patch{Merge: m{"spec": m{"l": []any{"b"}}}},
			want:   []string{`merge  {"metadata":{"resourceVersion":"100","uid":"uid1"},"spec":{"l":["b"]}}`},
		},
		"ListRemoval": {
			reason: "So is one that removes a mapping with a list in it.",
			patch:  patching.Patch{Merge: m{"spec": nil}},
			want:   []string{`merge  {"metadata":{"resourceVersion":"100","uid":"uid1"},"spec":null}`},
		},
		"MappingOverList": {
			reason: "It removes a list, to which others may have added.",
			patch:  patching.Patch{Transforms: []patching.Transform{set([]string{"spec", "l"}, m{"a": "b"})}},
			want:   []string{`merge  {"metadata":{"resourceVersion":"100","uid":"uid1"},"spec":{"l":{"a":"b"}}}`},
		},
		"Finalizer": {
			reason: ", it is a merge-patch as all others, with the version.",
			patch:  patching.Patch{Transforms: finalizer},
			want:   []string{`merge  {"metadata":{"finalizers":["x","own"],"resourceVersion":"100","uid":"uid1"}}`},
		},
		"Everything": {
			reason: "Two requests at most, the second with the version that came of the first.",
			patch:  everything,
			want: []string{
				`merge /status {"metadata":{"resourceVersion":"100"},"status":{"b":2,"s":3}}`,
				`merge  {"metadata":{"annotations":{"note":"new"},"finalizers":["x","own"],` +
					`"resourceVersion":"101","uid":"uid1"},"spec":{"n":2}}`,
			},
		},
		"Nothing": {
			reason: "Functions that change nothing send nothing.",
			patch:  patching.Patch{Transforms: []patching.Transform{patching.AllowDeletion("own")}},
		},
		"NullStatus": {
			reason: "A null for the whole status is not sent, as in Kopf.",
			patch:  patching.Patch{Merge: m{"status": nil}},
		},
		"StatusRemoved": {
			reason: "But a function may remove it.",
			patch:  patching.Patch{Transforms: []patching.Transform{remove([]string{"status"})}},
			want:   []string{`merge /status {"metadata":{"resourceVersion":"100"},"status":null}`},
		},
		"MergeOfTheSame": {
			reason: "A merge-patch is sent even if the body has it all: the server may not, any more.",
			patch:  patching.Patch{Merge: m{"spec": m{"n": int64(1)}}},
			want:   []string{`merge  {"metadata":{"uid":"uid1"},"spec":{"n":1}}`},
		},
		"RemovedThenRebuilt": {
			reason: "One patch must remove what two patches would have removed.",
			patch: patching.Patch{
				Merge:      m{"metadata": m{"annotations": nil}},
				Transforms: []patching.Transform{set([]string{"metadata", "annotations", "b"}, "B")},
			},
			want: []string{`merge  {"metadata":{"annotations":{"b":"B","note":null},"uid":"uid1"}}`},
		},
		"RemovedThenRebuiltDeeply": {
			reason: "At any depth.",
			patch: patching.Patch{
				Merge:      m{"spec": m{"deep": nil}},
				Transforms: []patching.Transform{set([]string{"spec", "deep", "a", "b"}, "B")},
			},
			want: []string{`merge  {"metadata":{"uid":"uid1"},"spec":{"deep":{"a":{"b":"B","c":null},"d":null}}}`},
		},
		"ListOfStatus": {
			reason: "A list of the status concerns /status alone.",
			patch: patching.Patch{
				Merge:      annotate(nil),
				Transforms: []patching.Transform{appendItem([]string{"status", "l"}, "a")},
			},
			want: []string{
				`merge /status {"metadata":{"resourceVersion":"100"},"status":{"l":["a"]}}`,
				`merge  {"metadata":{"annotations":{"note":"new"},"uid":"uid1"}}`,
			},
		},
		"NilMap": {
			reason: "A nil map is null in JSON, and that is absence in a merge-patch.",
			patch:  patching.Patch{Transforms: []patching.Transform{set([]string{"spec", "map"}, map[string]any(nil))}},
		},
		"NilListOverValue": {
			reason: "So is a nil list.",
			patch:  patching.Patch{Transforms: []patching.Transform{set([]string{"spec", "n"}, []any(nil))}},
			want:   []string{`merge  {"metadata":{"uid":"uid1"},"spec":{"n":null}}`},
		},
		"NotTheStatus": {
			reason: "Only the status itself belongs to /status, not what is named like it.",
			patch:  patching.Patch{Transforms: []patching.Transform{set([]string{"statusX"}, "x")}},
			want:   []string{`merge  {"metadata":{"uid":"uid1"},"statusX":"x"}`},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			api, body := serverOf(object()), object()
			merge := encode(tc.patch.Merge)
			result, err := writerFor(
				api,
			).Apply(t.Context(), patching.Target{Body: body, StatusSubresource: true}, tc.patch)
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
			if len(tc.want) > 0 && !cmp.Equal(api.stored(), result.Body) {
				t.Errorf("%s\nthe last answer: -want, +got:\n%s", tc.reason, cmp.Diff(api.stored(), result.Body))
			}
			if diff := cmp.Diff(object(), body); diff != "" || string(merge) != string(encode(tc.patch.Merge)) {
				t.Errorf("%s\nan input was modified: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
