package adapters_test

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
)

// A function that calls t.FailNow, or runtime.Goexit itself, takes its goroutine along, and all adapters with it.
func TestGoexit(t *testing.T) {
	tests := map[string]struct {
		reason  string
		retries *int
		want    outcome
	}{
		"Again": {
			reason: "without an outcome, it would be called again at once, for ever",
			want:   outcome{Delay: time.Minute, Err: "the function ended its goroutine by runtime.Goexit"},
		},
		"Last": {
			reason: "it is counted and limited as any other error", retries: ptr.To(1),
			want: outcome{Final: true, Delay: -1, Err: "Handler 'fn' failed with an exception and will stop now " +
				"(it would exceed 1 retries on the next attempt): the function ended its goroutine by runtime.Goexit"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			a := attemptOf(func(context.Context, *handlers.Call) error { runtime.Goexit(); return nil })
			a.Limits.Policy = handlers.Policy{Retries: tc.retries, Timeout: ptr.To(time.Hour)}
			setUp(a, nil).Run(t.Context(), a)
			if d := cmp.Diff(tc.want, outcomeOf(a.Outcome)); d != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, d)
			}
		})
	}
}
