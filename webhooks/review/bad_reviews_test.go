package review_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/webhooks/review"
)

// asked is a review that is as it must be, with changes: of the review, or, under "request", of its request. A nil
// takes the key away.
func asked(changes map[string]any) []byte {
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
		panic(err) // it is made of what has a JSON form
	}
	return text
}

func set(mapping map[string]any, key string, value any) {
	if mapping[key] = value; value == nil {
		delete(mapping, key)
	}
}

// inRequest changes one field of the request.
func inRequest(key string, value any) []byte {
	return asked(map[string]any{"request": map[string]any{key: value}})
}

// serving is a reviewer of kopfexamples, with handlers.
func serving(all ...*handlers.Handler) *review.Reviewer {
	served := review.Served{}
	served.Resource.Group, served.Resource.Version, served.Resource.Plural = "kopf.dev", "v1", "kopfexamples"
	for _, h := range all {
		served.Handlers = append(served.Handlers, adapters.New(h, nil))
	}
	return &review.Reviewer{Served: func() []review.Served { return []review.Served{served} }}
}

func TestBadReviews(t *testing.T) {
	none := map[string]any(nil)
	tests := map[string]struct {
		reason string
		body   []byte
		status int
		says   string
	}{
		"nothing":    {"there is no review", nil, 400, "not a JSON object"},
		"no JSON":    {"it was sent by another client", []byte("kind: AdmissionReview"), 400, "not a JSON object"},
		"cut off":    {"the rest may be anything", asked(nil)[:100], 400, "not a JSON object"},
		"two":        {"which one is meant", append(asked(nil), asked(nil)...), 400, "not a JSON object"},
		"null":       {"it is not a review", []byte("null"), 400, "not a JSON object"},
		"a list":     {"it is not a review", []byte("[]"), 400, "not a JSON object"},
		"other kind": {"it may mean anything", asked(map[string]any{"kind": "Pod"}), 400, "no AdmissionReview"},
		"odd kind":   {"it may mean anything", asked(map[string]any{"kind": 5}), 400, "no AdmissionReview"},
		"other version": {"its form is not known", asked(map[string]any{"apiVersion": "admission.k8s.io/v2"}), 400,
			"no AdmissionReview of admission.k8s.io/v1 or admission.k8s.io/v1beta1"},
		"no request": {"nothing is asked", asked(map[string]any{"request": nil}), 400, "no request"},
		"odd request": {
			"nothing is asked", asked(map[string]any{"request": "x"}), 400, "must be an object, not a text",
		},
		"no uid":    {"the answer could not be matched", inRequest("uid", nil), 400, "has no uid"},
		"empty uid": {"the answer could not be matched", inRequest("uid", ""), 400, "has no uid"},
		"odd uid": {
			"it is a text", inRequest("uid", 5), 400, "uid of the review's request must be a text, not a number",
		},
		"no resource": {"whose handlers?", inRequest("resource", nil), 400, "has no version"},
		"no version": {"of what?", inRequest("resource", map[string]any{"group": "", "resource": "pods"}), 400,
			"resource of the review's request has no version"},
		"odd operation":   {"it is a text", inRequest("operation", []any{"CREATE"}), 400, "must be a text, not a list"},
		"odd subresource": {"it is a text", inRequest("subResource", true), 400, "must be a text, not a boolean"},
		"odd dry run":     {"it is a boolean", inRequest("dryRun", "yes"), 400, "must be a boolean, not a text"},
		"no user":         {"who asks?", inRequest("userInfo", nil), 400, "has no userInfo"},
		"odd user":        {"who asks?", inRequest("userInfo", "ann"), 400, "must be an object, not a text"},
		"no objects":      {"about what?", inRequest("object", nil), 400, "no object, and no oldObject either"},
		"null objects":    {"about what?", inRequest("object", none), 400, "no object, and no oldObject either"},
		"two objects": {
			"the last one counts", bytes.Replace(asked(nil), []byte(`"uid":"u"`), []byte(`"uid":"u","object":null`), 1),
			400, "no object, and no oldObject either",
		},
		"odd object":     {"it is not an object", inRequest("object", []any{1}), 400, "must be an object, not a list"},
		"odd old object": {"it is not an object", inRequest("oldObject", 1.5), 400, "must be an object, not a number"},
		"unknown resource": {
			"nobody is asked about it", inRequest("resource", map[string]any{"version": "v1", "resource": "pods"}), 404,
			"no handler reviews the resource /v1/pods",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := serving().Review(t.Context(), review.Request{Body: tc.body})
			if err == nil || review.StatusOf(err) != tc.status || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("%s: got %v, status %d, want %q, %d", tc.reason, err, review.StatusOf(err), tc.says, tc.status)
			}
		})
	}
}

func TestAmbiguousReview(t *testing.T) {
	twice := func() []review.Served {
		one := serving().Served()
		return append(one, one...)
	}
	_, err := (&review.Reviewer{Served: twice}).Review(t.Context(), review.Request{Body: asked(nil)})
	if err == nil || review.StatusOf(err) != http.StatusConflict {
		t.Errorf("got %v, status %d", err, review.StatusOf(err))
	}
}

// What is not there has its default.
func TestSparseReviews(t *testing.T) {
	for name, body := range map[string][]byte{
		"no envelope":  asked(map[string]any{"apiVersion": nil, "kind": nil}),
		"no operation": inRequest("operation", nil),
		"empty object": inRequest("object", map[string]any{}),
		"empty user":   inRequest("userInfo", map[string]any{}),
	} {
		out, err := serving().Review(t.Context(), review.Request{Body: body})
		known := out.APIVersion == "admission.k8s.io/v1" && out.Kind == "AdmissionReview"
		if err != nil || !out.Response.Allowed || !known {
			t.Errorf("%s: got %+v, %v", name, out, err)
		}
	}
}
