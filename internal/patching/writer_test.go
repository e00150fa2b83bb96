package patching_test

import (
	"context"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-runtime/kopf-runtime/internal/patching"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

var kopfExampleKind = schema.GroupVersionKind{Group: "kopf.dev", Version: "v1", Kind: "KopfExample"}

// object returns the object as the handlers saw it.
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

func writerFor(api *server) *patching.PatchWriter {
	return &patching.PatchWriter{Client: api.client(), FieldManager: "tester"}
}

// annotate returns a merge patch that needs no version, with the status if it is not nil.
func annotate(status map[string]any) map[string]any {
	merge := map[string]any{"metadata": map[string]any{"annotations": map[string]any{"note": "new"}}}
	if status != nil {
		merge["status"] = status
	}
	return merge
}

// TestReleased shows when removing a finalizer releases the object.
func TestReleased(t *testing.T) {
	cases := map[string]struct {
		reason   string
		metadata map[string]any
		want     bool
		left     bool
	}{
		"LastOne": {
			reason:   "Removing the last finalizer in a deletion releases the object.",
			metadata: map[string]any{"deletionTimestamp": deletionTime}, want: true,
		},
		"ZeroGrace": {
			reason:   "A grace period of zero seconds does not prevent the release.",
			metadata: map[string]any{"deletionTimestamp": deletionTime, "deletionGracePeriodSeconds": int64(0)},
			want:     true,
		},
		"OthersLeft": {
			reason:   "A remaining finalizer of others prevents the release.",
			metadata: map[string]any{"deletionTimestamp": deletionTime, "finalizers": []any{"x", "own"}}, left: true,
		},
		"NotDeleting": {reason: "Without a deletion the object is not released.", left: true},
		"Grace": {
			reason:   "A grace period that runs prevents the release.",
			metadata: map[string]any{"deletionTimestamp": deletionTime, "deletionGracePeriodSeconds": int64(30)},
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
			result, err := writerFor(api).Apply(t.Context(), patching.Target{Body: body}, p)
			if err != nil {
				t.Fatalf("%s\nunexpected error: %v", tc.reason, err)
			}
			if result.Released != tc.want || result.Gone {
				t.Errorf("%s\nwant released %v, got %v, gone %v", tc.reason, tc.want, result.Released, result.Gone)
			}
			if (api.stored() != nil) != tc.left {
				t.Errorf("%s\nunexpected presence of the object: %v", tc.reason, api.stored())
			}
		})
	}
}

// TestWritesAsMeant compares the object at the server after random patches with the result of Patch.ApplyTo.
func TestWritesAsMeant(t *testing.T) {
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
		for _, subresource := range []bool{false, true} {
			api := serverOf(body)
			api.serveStatus(subresource)
			_, err := writerFor(api).Apply(t.Context(), patching.Target{Body: body, StatusSubresource: subresource}, p)
			if err != nil {
				t.Fatalf("seed %d, /status %t: unexpected error: %v", seed, subresource, err)
			}
			want, err := p.ApplyTo(body)
			if err != nil {
				t.Fatalf("seed %d: unexpected error: %v", seed, err)
			}
			for _, key := range []string{"spec", "status"} {
				if !diff.Equal(pruned(want[key]), pruned(api.stored()[key])) {
					t.Fatalf("seed %d, /status %t\nbody %s\npatch %s\n%s: -want, +got:\n%s", seed, subresource,
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

// TestNothingToWrite shows that an empty patch sends nothing.
func TestNothingToWrite(t *testing.T) {
	api := serverOf(object())
	result, err := writerFor(api).Apply(t.Context(), patching.Target{Body: object()}, patching.Patch{})
	if err != nil || result.Body != nil || len(api.writes()) != 0 {
		t.Errorf("an empty patch sent something: %+v, %v", result, err)
	}
}

// TestGet shows that an object is read, and that a missing one is an error.
func TestGet(t *testing.T) {
	api := serverOf(object())
	writer := writerFor(api)
	if _, err := writer.Get(
		t.Context(), kopfExampleKind, client.ObjectKey{Namespace: "ns1", Name: "other"},
	); !apierrors.IsNotFound(err) {
		t.Errorf("want a 404 for an object that does not exist, got %v", err)
	}
	body, err := writer.Get(t.Context(), kopfExampleKind, client.ObjectKey{Namespace: "ns1", Name: "kex1"})
	if err != nil {
		t.Fatalf("unexpected error: %v", err)
	}
	if diff := cmp.Diff(object(), body); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

// TestCancelledContext shows that a cancelled context stops a write before its first request.
func TestCancelledContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	api := serverOf(object())
	p := patching.Patch{Merge: annotate(map[string]any{"b": int64(2)})}
	result, err := writerFor(api).Apply(ctx, patching.Target{Body: object(), StatusSubresource: true}, p)
	if err == nil || result.StatusRefusal != nil || len(api.writes()) > 0 {
		t.Errorf("a cancelled context must not refuse or write anything: %v, %+v", err, result)
	}
}

// TestGone shows that a missing object is not an error.
func TestGone(t *testing.T) {
	type m = map[string]any
	cases := map[string]struct {
		reason string
		patch  patching.Patch
	}{
		"Main": {
			reason: "A 404 means that the object is gone, without an error.",
			patch:  patching.Patch{Merge: m{"spec": m{"n": int64(2)}}},
		},
		"Status": {
			reason: "A 404 of /status for a missing object stops the other write.",
			patch:  patching.Patch{Merge: annotate(m{"s": int64(2)})},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			api := serverOf(object())
			api.vanish()
			result, err := writerFor(api).Apply(
				t.Context(), patching.Target{Body: object(), StatusSubresource: true}, tc.patch,
			)
			if err != nil || !result.Gone || result.Released || result.Body != nil || len(api.writes()) != 1 {
				t.Errorf("%s\ngot %+v, %v", tc.reason, result, err)
			}
		})
	}
}

// TestNoVersionToGuardWith shows that a list is not written without a version to guard it.
func TestNoVersionToGuardWith(t *testing.T) {
	body := object()
	delete(body["metadata"].(map[string]any), "resourceVersion")
	api := serverOf(object())
	p := patching.Patch{Transforms: []patching.Transform{patching.BlockDeletion("own")}}
	if _, err := writerFor(api).Apply(t.Context(), patching.Target{Body: body}, p); err == nil ||
		len(api.writes()) > 0 {
		t.Errorf("a list was written without a resource version: %v, %v", err, api.writes())
	}
}

// fixedClient gives the same response to each request.
type fixedClient struct {
	patching.PatchClient
	text    string
	patches int
}

func (a *fixedClient) Get(_ context.Context, _ types.NamespacedName, take func([]byte) error) error {
	return take([]byte(a.text))
}

func (a *fixedClient) Patch(
	_ context.Context, _ types.NamespacedName, _ patching.RawPatch, take func([]byte) error,
) error {
	a.patches++
	return take([]byte(a.text))
}

// TestAnswers shows that managed fields are removed from a response before it is decoded, as in a cache.
func TestAnswers(t *testing.T) {
	const kept = `{"apiVersion":"kopf.dev/v1","kind":"KopfExample","metadata":{"name":"kex1","resourceVersion":"101",` +
		`"uid":"uid1"}}`
	sent := strings.Replace(kept, `"name"`, `"managedFields":[{"manager":"m","fieldsV1":{"f:spec":{}}}],"name"`, 1)
	writer := &patching.PatchWriter{Client: &fixedClient{text: sent}}
	result, err := writer.Apply(t.Context(), patching.Target{Body: object()}, patching.Patch{Merge: annotate(nil)})
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(kept, string(result.Answer.Text())); d != "" {
		t.Errorf("the text: -want, +got\n%s", d)
	}
	want := map[string]any{
		"apiVersion": "kopf.dev/v1", "kind": "KopfExample",
		"metadata": map[string]any{"name": "kex1", "resourceVersion": "101", "uid": "uid1"},
	}
	if d := cmp.Diff(want, result.Body); d != "" {
		t.Errorf("the body: -want, +got\n%s", d)
	}
}

// TestAnswersOfOtherObjects shows that a response with anything but the object is an error, and that nothing of it is
// kept.
func TestAnswersOfOtherObjects(t *testing.T) {
	for text, reason := range map[string]string{
		`{"kind":`:                     "a response that is cut off",
		`{}`:                           "a response that is not an object",
		`{"kind":""}`:                  "a response with an empty kind",
		`{"kind":5}`:                   "a kind that is not a text",
		`[]`:                           "a response that is a list",
		`{"kind":"KopfExample"}`:       "a response without metadata",
		`{"kind":"Status","code":200}`: "a status of a request",
		`{"kind":"KopfExample","metadata":{"name":"kex1","uid":"uid2","resourceVersion":"101"}}`: "a foreign uid",
		`{"kind":"Other","metadata":{"name":"kex1","uid":"uid1","resourceVersion":"101"}}`:       "a foreign kind",
	} {
		api := &fixedClient{text: text}
		writer := &patching.PatchWriter{Client: api}
		target := patching.Target{Body: object(), StatusSubresource: true}
		result, err := writer.Apply(t.Context(), target, patching.Patch{
			Merge: annotate(map[string]any{"s": int64(2)}),
		})
		if err == nil || result.Body != nil || api.patches != 1 || patching.IsHopeless(err) {
			t.Errorf("%s: error %v, %d requests, body %v: %s", reason, err, api.patches, result.Body, text)
		}
		checkClass(t, reason, nil, err)
	}
}

// TestReadingsOfOtherKinds shows that a read may return another uid, but not another kind.
func TestReadingsOfOtherKinds(t *testing.T) {
	gvk := kopfExampleKind.GroupVersion().WithKind("KopfExample")
	for text, want := range map[string]bool{
		`{"kind":"KopfExample","metadata":{"name":"kex1","uid":"uid2"}}`: true,
		`{"kind":"Status","code":200}`:                                   false,
		`{}`:                                                             false,
	} {
		writer := &patching.PatchWriter{Client: &fixedClient{text: text}}
		if _, err := writer.Get(t.Context(), gvk, types.NamespacedName{Name: "kex1"}); (err == nil) != want {
			t.Errorf("error %v, want success %t: %s", err, want, text)
		}
	}
}
