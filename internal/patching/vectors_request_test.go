package patching_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
	"github.com/kopf-runtime/kopf-runtime/internal/patching"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
	"github.com/kopf-runtime/kopf-runtime/test/vectors"
)

// TestVectorsPatchRequest compares the effect of our requests with the effect of Kopf's requests. Kopf sends up to four
// requests without guards. If another client has changed the object, Kopf keeps the functions for the next event, and
// the Writer applies them at once (deviation D-finalizer-same-pass).
func TestVectorsPatchRequest(t *testing.T) {
	vectors.Run(t, "patch_request", func(t *testing.T, input vectors.Fields, want vectors.Expected) {
		vectors.Known(t, input, "body", "patch", "fns", "resource", "gone", "failures", "interferences")
		api, body := resourceAPI(t, input)
		target := patching.Target{Body: body, StatusSubresource: api.resource.StatusSubresource}
		if gone, _ := input["gone"].(bool); gone {
			api.vanish()
		}
		p := patching.Patch{Merge: input.Mapping("patch"), Transforms: transformsOf(t, input.List("fns"))}
		result, err := writerFor(api).ApplyRetrying(t.Context(), target, p)

		if want.MustFail() {
			if err == nil {
				t.Fatal("Kopf returns an error, but the write succeeded")
			}
			return
		}
		expected := vectors.Known(
			t, want.Value, "requests", "awaited_version", "remaining_fns", "remaining_patch", "escalated", "final_body",
		)
		api.interfereFully()
		comparePlaces(t, expected.List("requests"), api.writes())
		refused := expected.Text("escalated", "") == "APIUnprocessableEntityError"
		if refused != (err != nil) || refused && !apierrors.IsInvalid(err) {
			t.Errorf("Kopf returns the error %q, got %v", expected.Text("escalated", ""), err)
		}
		released := strings.HasSuffix(expected.Text("awaited_version", ""), neverArrivesSuffix)
		if released != result.Released {
			t.Errorf("want released %t, got %t", released, result.Released)
		}
		left, _ := expected["final_body"].(map[string]any)
		if expected["remaining_fns"] != nil || expected.Text("escalated", "") == "APIConflictError" {
			if left, err = p.ApplyTo(left); err != nil {
				t.Fatal(err)
			}
		}
		sameJSON(
			t,
			"the final body",
			withoutVersion(left),
			withoutVersion(caseBody(input.Mapping("body"), api.stored())),
		)
	})
}

// neverArrivesSuffix is the suffix that Kopf appends to a version that the watch will not deliver.
const neverArrivesSuffix = "~which~never~arrives"

// withoutVersion returns a copy without the resource version, which depends on the number of requests.
func withoutVersion(body map[string]any) any {
	if body == nil {
		return nil
	}
	body, metadata := maps.Clone(body), maps.Clone(body["metadata"].(map[string]any))
	delete(metadata, "resourceVersion")
	body["metadata"] = metadata
	return body
}

// comparePlaces checks that requests went to the same endpoints as Kopf's: the object, its /status, or both.
func comparePlaces(t *testing.T, want []any, got []write) {
	t.Helper()
	wanted, sent := map[string]bool{}, map[string]bool{}
	for _, request := range want {
		w := vectors.Known(t, request, "url", "type", "payload", "status")
		wanted[w.Text("url", "")] = true
	}
	for _, request := range got {
		sent[request.URL] = true
	}
	if d := cmp.Diff(wanted, sent); d != "" {
		t.Errorf("requests to: -want, +got\n%s", d)
	}
}

// caseBody returns the body with the kind and the deletion timestamp of the case, which may be texts that no server
// accepts, and without the generation, which cases do not have.
func caseBody(given vectors.Fields, body map[string]any) map[string]any {
	if body == nil {
		return nil
	}
	metadata := body["metadata"].(map[string]any)
	delete(metadata, "generation")
	if metadata["deletionTimestamp"] != nil {
		metadata["deletionTimestamp"] = given.Mapping("metadata")["deletionTimestamp"]
	}
	for _, key := range []string{"apiVersion", "kind"} {
		delete(body, key)
		if value, said := given[key]; said {
			body[key] = value
		}
	}
	return body
}

// resourceAPI serves the resource of the case, by default kopf.dev/v1/kopfexamples without subresources. The kind of
// the resource replaces the kind of the body.
func resourceAPI(t *testing.T, input vectors.Fields) (api *server, body map[string]any) {
	t.Helper()
	resource := vectors.Fields{}
	if input["resource"] != nil {
		resource = vectors.Known(t, input["resource"], "group", "version", "plural", "kind", "singular", "shortcuts",
			"categories",
			"subresources", "namespaced", "preferred", "verbs")
	}
	gvk := schema.GroupVersionKind{
		Group: resource.Text("group", "kopf.dev"), Version: resource.Text("version", "v1"), Kind: resource.Text(
			"kind", "KopfExample",
		),
	}
	body = maps.Clone(map[string]any(input.Mapping("body")))
	body["apiVersion"], body["kind"] = gvk.ToAPIVersionAndKind()
	if at, _ := diff.ResolvePath(body, diff.Path{"metadata", "deletionTimestamp"}); at != nil {
		metadata := maps.Clone(body["metadata"].(map[string]any))
		metadata["deletionTimestamp"] = deletionTime
		body["metadata"] = metadata
	}
	api = serve(memapi.Resource{
		Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind, Plural: resource.Text("plural", "kopfexamples"),
		Namespaced:        resource["namespaced"] != false,
		StatusSubresource: slices.Contains(resource.List("subresources"), "status"),
	}, body)
	api.failures, api.interferences = input.List("failures"), input.List("interferences")
	return api, body
}
