package review_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/webhooks/review"
)

// newReview returns a valid review with changes: of the review, or, under "request", of its request. A nil removes the
// key.
func newReview(changes map[string]any) []byte {
	request := map[string]any{
		"uid": "u", "operation": "CREATE", "userInfo": map[string]any{"username": "ann"},
		"resource": map[string]any{"group": "kopf.dev", "version": "v1", "resource": "kopfexamples"},
		"object":   map[string]any{"metadata": map[string]any{"name": "kex1"}, "spec": map[string]any{"a": 1}},
	}
	whole := map[string]any{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
	for key, value := range changes {
		into, inner := value.(map[string]any)
		if key != "request" || !inner {
			set(whole, key, value)
			continue
		}
		for key, value := range into {
			set(request, key, value)
		}
	}
	text, err := json.Marshal(whole)
	if err != nil {
		panic(err) // the review has a JSON form
	}
	return text
}

func set(mapping map[string]any, key string, value any) {
	if mapping[key] = value; value == nil {
		delete(mapping, key)
	}
}

// inRequest returns a review with one changed field of the request.
func inRequest(key string, value any) []byte {
	return newReview(map[string]any{"request": map[string]any{key: value}})
}

// newReviewer returns a reviewer of kopfexamples with the given handlers.
func newReviewer(all ...*handlers.Handler) *review.Reviewer {
	served := review.ServedResource{}
	served.Resource.Group, served.Resource.Version, served.Resource.Plural = "kopf.dev", "v1", "kopfexamples"
	for _, h := range all {
		served.Handlers = append(served.Handlers, adapters.New(h, nil))
	}
	return &review.Reviewer{ServedResources: func() []review.ServedResource { return []review.ServedResource{served} }}
}

func TestBadReviews(t *testing.T) {
	none := map[string]any(nil)
	tests := map[string]struct {
		reason string
		body   []byte
		status int
		says   string
	}{
		"nothing": {"an empty body is an error", nil, 400, "not a JSON object"},
		"no JSON": {"a body that is not JSON is an error",
			[]byte("kind: AdmissionReview"), 400, "not a JSON object"},
		"cut off": {"an incomplete body is an error", newReview(nil)[:100], 400, "not a JSON object"},
		"two": {"two reviews in one body are an error",
			append(newReview(nil), newReview(nil)...), 400, "not a JSON object"},
		"null":   {"a null is an error", []byte("null"), 400, "not a JSON object"},
		"a list": {"a list is an error", []byte("[]"), 400, "not a JSON object"},
		"other kind": {"a review of another kind is an error",
			newReview(map[string]any{"kind": "Pod"}), 400, "no AdmissionReview"},
		"odd kind": {"a kind that is not a text is an error",
			newReview(map[string]any{"kind": 5}), 400, "no AdmissionReview"},
		"other version": {"a review of an unknown version is an error",
			newReview(map[string]any{"apiVersion": "admission.k8s.io/v2"}), 400,
			"no AdmissionReview of admission.k8s.io/v1 or admission.k8s.io/v1beta1"},
		"no request": {"a review without a request is an error",
			newReview(map[string]any{"request": nil}), 400, "no request"},
		"odd request": {
			"a request that is not an object is an error",
			newReview(map[string]any{"request": "x"}), 400, "must be an object, not a text",
		},
		"no uid":    {"a request without a uid is an error", inRequest("uid", nil), 400, "has no uid"},
		"empty uid": {"a request with an empty uid is an error", inRequest("uid", ""), 400, "has no uid"},
		"odd uid": {
			"a uid that is not a text is an error",
			inRequest("uid", 5), 400, "uid of the review's request must be a text, not a number",
		},
		"no resource": {"a request without a resource is an error", inRequest("resource", nil), 400, "has no version"},
		"no version": {"a resource without a version is an error",
			inRequest("resource", map[string]any{"group": "", "resource": "pods"}), 400,
			"resource of the review's request has no version"},
		"odd operation": {"an operation that is not a text is an error",
			inRequest("operation", []any{"CREATE"}), 400, "must be a text, not a list"},
		"odd subresource": {"a subresource that is not a text is an error",
			inRequest("subResource", true), 400, "must be a text, not a boolean"},
		"odd dry run": {"a dry run that is not a boolean is an error",
			inRequest("dryRun", "yes"), 400, "must be a boolean, not a text"},
		"no user": {"a request without a user is an error", inRequest("userInfo", nil), 400, "has no userInfo"},
		"odd user": {"a user that is not an object is an error",
			inRequest("userInfo", "ann"), 400, "must be an object, not a text"},
		"no objects": {"a request without an object is an error",
			inRequest("object", nil), 400, "no object, and no oldObject either"},
		"null objects": {"a request with a null object is an error",
			inRequest("object", none), 400, "no object, and no oldObject either"},
		"two objects": {
			"the last of repeated keys counts",
			bytes.Replace(newReview(nil), []byte(`"uid":"u"`), []byte(`"uid":"u","object":null`), 1),
			400, "no object, and no oldObject either",
		},
		"odd object": {"an object that is a list is an error",
			inRequest("object", []any{1}), 400, "must be an object, not a list"},
		"odd old object": {"an old object that is a number is an error",
			inRequest("oldObject", 1.5), 400, "must be an object, not a number"},
		"unknown resource": {
			"a resource without a handler is not found",
			inRequest("resource", map[string]any{"version": "v1", "resource": "pods"}), 404,
			"no handler reviews the resource /v1/pods",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := newReviewer().Review(t.Context(), review.EndpointRequest{Body: tc.body})
			if err == nil || review.StatusOf(err) != tc.status || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("%s: got %v, status %d, want %q, %d", tc.reason, err, review.StatusOf(err), tc.says, tc.status)
			}
		})
	}
}

func TestAmbiguousReview(t *testing.T) {
	twice := func() []review.ServedResource {
		one := newReviewer().ServedResources()
		return append(one, one...)
	}
	_, err := (&review.Reviewer{ServedResources: twice}).Review(t.Context(),
		review.EndpointRequest{Body: newReview(nil)})
	if err == nil || review.StatusOf(err) != http.StatusConflict {
		t.Errorf("a resource that is served twice must be a conflict, got %v, status %d", err, review.StatusOf(err))
	}
}

// TestSparseReviews shows that missing fields of a review have defaults.
func TestSparseReviews(t *testing.T) {
	for name, body := range map[string][]byte{
		"no envelope":  newReview(map[string]any{"apiVersion": nil, "kind": nil}),
		"no operation": inRequest("operation", nil),
		"empty object": inRequest("object", map[string]any{}),
		"empty user":   inRequest("userInfo", map[string]any{}),
	} {
		out, err := newReviewer().Review(t.Context(), review.EndpointRequest{Body: body})
		known := out.APIVersion == "admission.k8s.io/v1" && out.Kind == "AdmissionReview"
		if err != nil || !out.Response.Allowed || !known {
			t.Errorf("%s: got %+v, %v", name, out, err)
		}
	}
}
