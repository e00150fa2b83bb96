package patching_test

import (
	"errors"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/patching"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
	"github.com/kopf-runtime/kopf-runtime/test/vectors"
)

func TestVectorsPatchRequest(t *testing.T) {
	vectors.Run(t, "patch_request", func(t *testing.T, input vectors.Fields, want vectors.Expected) {
		vectors.Known(t, input, "body", "patch", "fns", "resource", "gone", "failures", "interferences")
		api, body := resourceAPI(t, input)
		target := patching.Target{Body: body, StatusSubresource: api.resource.StatusSubresource}
		if gone, _ := input["gone"].(bool); gone {
			api.vanish()
		}
		writer := patching.Writer{Client: api.client()}
		result, err := writer.ApplyRetrying(t.Context(), target, patching.Patch{
			Merge: input.Mapping("patch"), Transforms: transformsOf(t, input.List("fns")),
		}, nil)

		if want.MustFail() {
			if err == nil {
				t.Fatal("an error is expected")
			}
			return
		}
		expected := vectors.Known(
			t, want.Value, "requests", "awaited_version", "remaining_fns", "remaining_patch", "escalated", "final_body",
		)
		compareRequests(t, body, expected.List("requests"), api.writes())
		compareEnd(t, expected, result, err)
		sameJSON(t, "the final body", expected["final_body"], ofTheCase(input.Mapping("body"), api.stored()))
	})
}

// ofTheCase is the body with the kind and the time of deletion that the case gives it, if any: the cases have texts
// that no server takes. They know nothing of generations.
func ofTheCase(given vectors.Fields, body map[string]any) any {
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

// resourceAPI serves the resource of the case, by default kopf.dev/v1/kopfexamples without subresources. The resource
// is what counts, whatever kind the body says to be of: a client is told the kind of the resource.
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
	if at, _ := diff.Resolve(body, diff.Path{"metadata", "deletionTimestamp"}); at != nil {
		metadata := maps.Clone(body["metadata"].(map[string]any))
		metadata["deletionTimestamp"] = someTime
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

// compareRequests takes the requests for what they are, except operations after the test: these, for their effect.
func compareRequests(t *testing.T, body map[string]any, want []any, got []write) {
	t.Helper()
	if len(want) != len(got) {
		t.Fatalf("requests: -want, +got:\n%s", cmp.Diff(want, decode(encode(got))))
	}
	for i := range want {
		w := vectors.Known(t, want[i], "url", "type", "payload", "status")
		g := got[i]
		status, _ := w["status"].(int64)
		sameJSON(t, "request", []any{w["url"], w["type"], status}, []any{g.URL, g.Type, g.Status})
		wanted, isOps := w["payload"].([]any)
		if !isOps {
			sameJSON(t, "merge-patch", w["payload"], g.Payload)
			continue
		}
		given, _ := g.Payload.([]any)
		if len(wanted) == 0 || len(given) == 0 {
			t.Fatalf("request %d: a JSON-patch needs operations: want %v, got %v", i, wanted, given)
		}
		sameJSON(t, "the test of the version", wanted[0], given[0])
		before := g.Before
		if before == nil {
			before = body
		}
		sameJSON(t, "the effect of the operations", effect(t, before, wanted[1:]), effect(t, before, given[1:]))
	}
}

func effect(t *testing.T, body map[string]any, ops []any) any {
	t.Helper()
	out, err := operated(body, encode(ops))
	if err != nil {
		t.Fatalf("the operations do not apply: %v", err)
	}
	return out
}

func compareEnd(t *testing.T, want vectors.Fields, result patching.Result, err error) {
	t.Helper()
	// A lost race for the version is no failure in Kopf: the functions are carried over to the next event.
	carried := errors.Is(err, patching.ErrConflict) && !apierrors.IsConflict(err)
	escalated := err
	if carried {
		escalated = nil
	}
	// Refusals of /status are reported aside. A 404 is not one in Kopf.
	if escalated == nil && result.StatusRefused != nil && !apierrors.IsNotFound(result.StatusRefused) {
		escalated = result.StatusRefused
	}
	if (want["escalated"] != nil) != (escalated != nil) {
		t.Errorf("escalated: want %v, got %v", want["escalated"], escalated)
	}
	checks := map[string]func(error) bool{
		"APIConflictError": apierrors.IsConflict, "APIUnprocessableEntityError": apierrors.IsInvalid,
		"APIForbiddenError": apierrors.IsForbidden, "APINotFoundError": apierrors.IsNotFound,
	}
	if check, ok := checks[want.Text("escalated", "")]; ok && !check(escalated) {
		t.Errorf("escalated: want %v, got %v", want["escalated"], escalated)
	}

	var awaited, remaining, merge any
	if result.Body != nil && !result.Gone && escalated == nil {
		version, _ := diff.Resolve(result.Body, diff.Path{"metadata", "resourceVersion"})
		awaited = version
		if result.Released {
			awaited = version.(string) + "~which~never~arrives"
		}
	}
	if carried {
		remaining, merge = int64(len(result.Remaining.Transforms)), map[string]any{}
	}
	sameJSON(t, "the awaited version", want["awaited_version"], awaited)
	sameJSON(t, "the remaining functions", want["remaining_fns"], remaining)
	sameJSON(t, "the remaining merge-patch", want["remaining_patch"], merge)
}
