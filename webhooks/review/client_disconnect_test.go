package review_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/webhooks/review"
)

// TestClientLeaves shows that a review ends at the next step after the client has disconnected.
func TestClientLeaves(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		after  int // steps
		want   []string
	}{
		"at once":      {"after a disconnection at the beginning, no handler is called", 0, nil},
		"in a handler": {"after a disconnection in a handler, the next one is not called", 1, []string{"first"}},
		"in the last": {"after a disconnection in the last handler, no patch is made",
			2, []string{"first", "second", "change"}},
		"in the compare": {"after a disconnection while the patch is made, no answer is sent",
			4, []string{"first", "second", "change", "change"}},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			var steps []string
			step := func(name string) {
				if steps = append(steps, name); len(steps) == tc.after {
					leave()
				}
			}
			if tc.after == 0 {
				leave()
			}
			change := func(object map[string]any) error { step("change"); object["x"] = "y"; return nil }
			handler := func(id string, act func(call *handlers.Invocation) error) *handlers.Handler {
				called := func(_ context.Context, call *handlers.Invocation) error { step(id); return act(call) }
				return &handlers.Handler{ID: id, Mutating: true, Call: called}
			}
			reviewer := newReviewer(
				handler("first", func(*handlers.Invocation) error { return nil }),
				handler("second", func(call *handlers.Invocation) error { return call.Writer.AddTransform(change) }),
			)
			_, err := reviewer.Review(ctx, review.EndpointRequest{Body: newReview(nil)})
			if err == nil || review.StatusOf(err) != http.StatusServiceUnavailable {
				t.Errorf("want the status 503, got the error %v, status %d", err, review.StatusOf(err))
			}
			if d := cmp.Diff(tc.want, steps); d != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, d)
			}
		})
	}
}
