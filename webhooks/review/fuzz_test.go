package review_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/webhooks/review"
)

// FuzzReview sends arbitrary bodies. Each one is answered, or refused with a status. An answer requires a user and an
// object.
func FuzzReview(f *testing.F) {
	for _, seed := range [][]byte{
		nil, []byte("null"), []byte("[]"), []byte(`"x"`), []byte(`{"request":[]}`), newReview(nil),
		[]byte("{\"request\":{\"uid\":\xff}}"), inRequest("uid", 1), inRequest("object", nil),
		inRequest("oldObject", map[string]any{}),
		inRequest("operation", "DELETE"), inRequest("subResource", "status"), inRequest("dryRun", true),
		newReview(map[string]any{"apiVersion": "admission.k8s.io/v1beta1"}), newReview(map[string]any{"kind": "Pod"}),
		inRequest("object", map[string]any{"metadata": []any{}, "spec": 1e300}), newReview(nil)[:200],
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		calls := 0
		reviewer := newReviewer(&handlers.Handler{
			ID: "fn", Mutating: true, Subresource: "*", Call: func(_ context.Context, call *handlers.Invocation) error {
				calls++
				if call.Object == nil || call.Cause.Body() == nil || call.Admission.User == nil {
					t.Errorf("a handler was called without an object or a user: %+v", call)
				}
				call.Admission.AddWarning(call.Admission.Name)
				return call.Writer.AddTransform(func(object map[string]any) error { object["a/~b"] = "x"; return nil })
			},
		})
		out, err := reviewer.Review(t.Context(), review.EndpointRequest{Body: body})
		if err != nil {
			if status := review.StatusOf(err); status != 400 && status != 404 {
				t.Errorf("status %d: %v", status, err)
			}
			return
		}
		text, err := out.EncodeJSON()
		said := out.Response.UID != "" && out.Response.Allowed == (out.Response.Status == nil)
		if err != nil || !json.Valid(text) || !said {
			t.Errorf("%s: %v", text, err)
		}
		if answered := calls == 1; answered != (out.Response.Patch != nil) || calls > 1 {
			t.Errorf("%d calls, and the answer %s", calls, text)
		}
	})
}
