package patching_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/internal/patching"
)

// TestRequests shows the requests for each sort of patch, and the guards by uid and version.
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
			reason: "A main patch is guarded by the uid, and one of /status, which ignores it, by the version.",
			patch:  patching.Patch{Merge: annotate(m{"b": int64(2)})},
			want: []string{
				`merge /status {"metadata":{"resourceVersion":"100"},"status":{"b":2}}`,
				`merge  {"metadata":{"annotations":{"note":"new"},"uid":"uid1"}}`,
			},
		},
		"List": {
			reason: "A patch that replaces a list is guarded by the version.",
			patch:  patching.Patch{Merge: m{"spec": m{"l": []any{"b"}}}},
			want:   []string{`merge  {"metadata":{"resourceVersion":"100","uid":"uid1"},"spec":{"l":["b"]}}`},
		},
		"ListRemoval": {
			reason: "A patch that removes a mapping with a list is guarded by the version.",
			patch:  patching.Patch{Merge: m{"spec": nil}},
			want:   []string{`merge  {"metadata":{"resourceVersion":"100","uid":"uid1"},"spec":null}`},
		},
		"MappingOverList": {
			reason: "A patch that replaces a list by a mapping is guarded by the version.",
			patch:  patching.Patch{Transforms: []patching.Transform{set([]string{"spec", "l"}, m{"a": "b"})}},
			want:   []string{`merge  {"metadata":{"resourceVersion":"100","uid":"uid1"},"spec":{"l":{"a":"b"}}}`},
		},
		"Finalizer": {
			reason: "A finalizer is added by a merge patch that is guarded by the version.",
			patch:  patching.Patch{Transforms: finalizer},
			want:   []string{`merge  {"metadata":{"finalizers":["x","own"],"resourceVersion":"100","uid":"uid1"}}`},
		},
		"Everything": {
			reason: "At most two requests are sent, the second with the version of the first response.",
			patch:  everything,
			want: []string{
				`merge /status {"metadata":{"resourceVersion":"100"},"status":{"b":2,"s":3}}`,
				`merge  {"metadata":{"annotations":{"note":"new"},"finalizers":["x","own"],` +
					`"resourceVersion":"101","uid":"uid1"},"spec":{"n":2}}`,
			},
		},
		"Nothing": {
			reason: "Functions without effect send nothing.",
			patch:  patching.Patch{Transforms: []patching.Transform{patching.AllowDeletion("own")}},
		},
		"NullStatus": {
			reason: "A null for the whole status is not sent, as in Kopf.",
			patch:  patching.Patch{Merge: m{"status": nil}},
		},
		"StatusRemoved": {
			reason: "A function can remove the whole status.",
			patch:  patching.Patch{Transforms: []patching.Transform{remove([]string{"status"})}},
			want:   []string{`merge /status {"metadata":{"resourceVersion":"100"},"status":null}`},
		},
		"MergeOfTheSame": {
			reason: "A merge patch is sent even if the body already has its values, as the server may differ.",
			patch:  patching.Patch{Merge: m{"spec": m{"n": int64(1)}}},
			want:   []string{`merge  {"metadata":{"uid":"uid1"},"spec":{"n":1}}`},
		},
		"RemovedThenRebuilt": {
			reason: "A mapping that is removed and rebuilt loses its other keys in one patch.",
			patch: patching.Patch{
				Merge:      m{"metadata": m{"annotations": nil}},
				Transforms: []patching.Transform{set([]string{"metadata", "annotations", "b"}, "B")},
			},
			want: []string{`merge  {"metadata":{"annotations":{"b":"B","note":null},"uid":"uid1"}}`},
		},
		"RemovedThenRebuiltDeeply": {
			reason: "A mapping that is removed and rebuilt deeply loses its other keys at all depths.",
			patch: patching.Patch{
				Merge:      m{"spec": m{"deep": nil}},
				Transforms: []patching.Transform{set([]string{"spec", "deep", "a", "b"}, "B")},
			},
			want: []string{`merge  {"metadata":{"uid":"uid1"},"spec":{"deep":{"a":{"b":"B","c":null},"d":null}}}`},
		},
		"ListOfStatus": {
			reason: "A list of the status guards the patch of /status only.",
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
			reason: "A nil map from a function is null, which is not sent over a missing key.",
			patch:  patching.Patch{Transforms: []patching.Transform{set([]string{"spec", "map"}, map[string]any(nil))}},
		},
		"NilListOverValue": {
			reason: "A nil list from a function over a value removes it.",
			patch:  patching.Patch{Transforms: []patching.Transform{set([]string{"spec", "n"}, []any(nil))}},
			want:   []string{`merge  {"metadata":{"uid":"uid1"},"spec":{"n":null}}`},
		},
		"NotTheStatus": {
			reason: "A key that only begins like the status is sent to the main resource.",
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
				t.Errorf("%s\nthe result differs from the stored object: -want, +got:\n%s",
					tc.reason, cmp.Diff(api.stored(), result.Body))
			}
			if diff := cmp.Diff(object(), body); diff != "" || string(merge) != string(encode(tc.patch.Merge)) {
				t.Errorf("%s\nan input was modified: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
