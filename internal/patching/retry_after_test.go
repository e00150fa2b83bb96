package patching_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/kopf-runtime/kopf-runtime/internal/patching"
	"github.com/kopf-runtime/kopf-runtime/internal/transport"
)

// newRefusingServer returns a server that refuses the first request with a delay.
func newRefusingServer(code int, after, text string) transport.RoundTripFunc {
	refused := false
	return func(r *http.Request) (*http.Response, error) {
		answer := &http.Response{
			StatusCode: http.StatusOK, Request: r, Header: http.Header{"Content-Type": {"application/json"}},
			Body: io.NopCloser(strings.NewReader(`{"kind":"ConfigMap"}`)),
		}
		if refused {
			return answer, nil
		}
		refused = true
		answer.StatusCode, answer.Body = code, io.NopCloser(strings.NewReader(text))
		answer.Header.Set("Retry-After", after)
		return answer, nil
	}
}

// TestRetryAfter shows how a request treats a Retry-After: it waits if it has enough time; otherwise its error has the
// status and the delay.
func TestRetryAfter(t *testing.T) {
	const status = `{"kind":"Status","apiVersion":"v1","status":"Failure","code":429,"reason":"TooManyRequests",` +
		`"message":"slow down","details":{"causes":[{"message":"a cause"}]}}`
	const late, busy = 10 * time.Second, "too many requests"
	tests := map[string]struct {
		reason string
		server transport.RoundTripFunc
		limit  time.Duration // of the connection; a negative one disables it
		wait   time.Duration // the time limit of the caller
		took   time.Duration
		want   time.Duration // the delay in the error; zero means success
		text   string
	}{
		"InTime": {"a delay within the limit is waited for",
			newRefusingServer(429, "3", ""), 0, late, 3 * time.Second, 0, ""},
		"Late": {"a delay beyond the limit is returned to the caller",
			newRefusingServer(429, "30", "busy"), 0, late, 0, 30 * time.Second, busy},
		"LateStatus": {"the error keeps the message of the status",
			newRefusingServer(429, "30", status), 0, late, 0, 30 * time.Second, "slow down"},
		"LateNoLimit": {"without a limit of the connection the caller's counts",
			newRefusingServer(429, "30", "busy"), -1, late, 0, 30 * time.Second, busy},
		"Unavailable": {"a 503 is treated like a 429",
			newRefusingServer(503, "30", "busy"), 0, late, 0, 30 * time.Second, "unable to handle"},
		"VeryLate": {"an excessive delay is reduced to ten minutes",
			newRefusingServer(429, "99999999999", ""), 0, late, 0, 10 * time.Minute, busy},
		"NotLimited": {"without a limit of the caller the delay is waited for",
			newRefusingServer(429, "30", "busy"), 0, 0, 30 * time.Second, 0, ""},
		"Conflict": {"a refusal other than 429 and 503 has no delay",
			newRefusingServer(409, "30", status), 0, late, 0, -1, "slow down"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := t.Context(), context.CancelFunc(func() {})
				if tc.wait > 0 {
					ctx, cancel = context.WithTimeout(ctx, tc.wait)
				}
				defer cancel()
				client := patching.NewObjectClient(
					&rest.Config{Host: "http://api", QPS: -1},
					&http.Client{Transport: transport.RequestLimits{RequestTimeout: tc.limit}.WrapRoundTrip(tc.server)},
					schema.GroupVersionResource{Version: "v1", Resource: "configmaps"},
				)
				began := time.Now()
				patch := patching.RawPatch{Type: types.MergePatchType, Data: []byte("{}")}
				err := client.Patch(ctx, types.NamespacedName{Name: "one"}, patch, func([]byte) error { return nil })
				if took := time.Since(began); took != tc.took {
					t.Errorf("%s: took %s, want %s", tc.reason, took, tc.took)
				}
				if got := transport.RetryAfter(err); (err == nil) != (tc.want == 0) || got != max(tc.want, 0) {
					t.Errorf("%s: the delay is %s, want %s: %v", tc.reason, got, tc.want, err)
				}
				if err == nil {
					return
				}
				if !strings.Contains(err.Error(), tc.text) {
					t.Errorf("%s: want %q in the error: %v", tc.reason, tc.text, err)
				}
			})
		})
	}
}
