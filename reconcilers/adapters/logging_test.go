package adapters_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/cause"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/panics"
)

// settling is a function that decides on the outcome of its own attempt.
func settling(o execution.Outcome) (*execution.Attempt, adapters.Reconciler) {
	a := attemptOf(nil)
	a.Call.Handler.Call = func(context.Context, *handlers.Invocation) error { a.Outcome = o; return nil }
	return a, adapters.Chain(calling(), adapters.Logging)
}

func lineOf(t *testing.T, lines []string) map[string]any {
	t.Helper()
	if len(lines) != 1 {
		t.Fatalf("one line tells what came of it, got %d: %v", len(lines), lines)
	}
	var line map[string]any
	if err := json.Unmarshal([]byte(lines[0]), &line); err != nil {
		t.Fatal(err)
	}
	return line
}

func TestLoggingTellsTheOutcome(t *testing.T) {
	panicked := &panics.Error{Value: "boo", Stack: []byte("goroutine 1")}
	tests := map[string]struct {
		reason  string
		outcome execution.Outcome
		want    map[string]any // besides the names
	}{
		"ForGood": {
			reason: "nobody will call it again", outcome: execution.Outcome{Final: true, Err: errBoo},
			want: map[string]any{"msg": "Handler failed permanently", "error": "boo"},
		},
		"Later": {
			reason: "somebody will, and when", outcome: execution.Outcome{Err: errBoo, Delay: ptr.To(90 * time.Second)},
			want: map[string]any{
				"msg": "Handler failed temporarily; retrying", "error": "boo", "after": "1m30s",
			},
		},
		"AtOnce": {
			reason: "and when is now", outcome: execution.Outcome{Err: errBoo},
			want: map[string]any{"msg": "Handler failed temporarily; retrying at once", "error": "boo"},
		},
		"Blocked": {
			reason: "it waits for the object, so somebody must look at it", outcome: execution.Outcome{
				Aborted: true, Blocked: true, Err: errBoo,
			},
			want: map[string]any{
				"msg": "Cannot call the handler with this object; waiting until the object changes", "error": "boo",
			},
		},
		"Aborted": {
			reason: "the exit of the operator is no error", outcome: execution.Outcome{Aborted: true, Err: errBoo},
			want: map[string]any{
				"msg": "Handler was interrupted; calling it again later", "error": "boo", "level": 0.0,
			},
		},
		"Ignored": {
			reason: "an ignored error is not a silent one", outcome: execution.Outcome{Final: true, Ignored: errBoo},
			want: map[string]any{"msg": "Handler failed; its errors are ignored", "error": "boo"},
		},
		"Panic": {
			reason: "the place of a panic is in the log only", outcome: execution.Outcome{Err: panicked},
			want: map[string]any{
				"msg": "Handler failed temporarily; retrying at once", "error": "panic: boo",
				"stack": "goroutine 1",
			},
		},
		"IgnoredPanic": {
			reason: "even if it is ignored", outcome: execution.Outcome{Final: true, Ignored: panicked},
			want: map[string]any{
				"msg": "Handler failed; its errors are ignored", "error": "panic: boo", "stack": "goroutine 1",
			},
		},
		"Unfinished": {
			reason: "no error, but no end", outcome: execution.Outcome{}, want: map[string]any{
				"msg": "Handler is not finished yet", "level": 0.0,
			},
		},
		"Success": {
			reason: "nothing to worry about", outcome: execution.Outcome{Final: true}, want: map[string]any{
				"msg": "Handler succeeded", "level": 0.0,
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			ctx, lines := logging(t.Context())
			a, chain := settling(tc.outcome)
			attempt(ctx, t, chain, a)
			tc.want["logger"], tc.want["handler"], tc.want["reason"], tc.want["attempt"] = "", "fn", "create", 1.0
			if d := cmp.Diff(tc.want, lineOf(t, *lines)); d != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, d)
			}
		})
	}
}

func TestLoggingNamesTheHandlerToTheFunction(t *testing.T) {
	ctx, lines := logging(t.Context())
	a := attemptOf(func(
		ctx context.Context, _ *handlers.Invocation,
	) error {
		logf.FromContext(ctx).Info("hello")
		return nil
	})
	a.Call.Retry, a.Call.Cause = 2, &cause.Cause{Reason: cause.Delete}
	attempt(ctx, t, whole(nil), a)
	if len(*lines) != 2 {
		t.Fatalf("got %v", *lines)
	}
	want := map[string]any{
		"logger": "", "level": 0.0, "msg": "hello", "handler": "fn", "reason": "delete", "attempt": 3.0,
	}
	if d := cmp.Diff(want, lineOf(t, (*lines)[:1])); d != "" {
		t.Errorf("what a function logs is its own, at the attempt counted from one: -want, +got:\n%s", d)
	}
}

// The whole chain logs the stack of a panic where it is ordinary, and where a limit wraps it.
func TestLoggingFindsTheStack(t *testing.T) {
	for name, retries := range map[string]*int{"Ordinary": nil, "Last": ptr.To(1)} {
		t.Run(name, func(t *testing.T) {
			ctx, lines := logging(t.Context())
			a := attemptOf(func(context.Context, *handlers.Invocation) error { panic("boo") })
			a.Limits.Policy.Retries = retries
			attempt(ctx, t, whole(nil), a)
			if stack, _ := lineOf(t, *lines)["stack"].(string); !strings.Contains(stack, "logging_test.go") {
				t.Errorf("the line where it happened is what one looks for: %q", stack)
			}
		})
	}
}
