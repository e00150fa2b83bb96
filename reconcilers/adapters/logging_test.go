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

	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/execution"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/internal/panics"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
)

// loggingChain returns an attempt whose function sets the given outcome, and a chain that logs it.
func loggingChain(o execution.Outcome) (*execution.Attempt, adapters.Reconciler) {
	a := attemptOf(nil)
	a.Call.Handler.Call = func(context.Context, *handlers.Invocation) error { a.Outcome = o; return nil }
	return a, adapters.ChainAdapters(calling(), adapters.Logging)
}

func lineOf(t *testing.T, lines []string) map[string]any {
	t.Helper()
	if len(lines) != 1 {
		t.Fatalf("want one line about the outcome, got %d: %v", len(lines), lines)
	}
	var line map[string]any
	if err := json.Unmarshal([]byte(lines[0]), &line); err != nil {
		t.Fatal(err)
	}
	return line
}

func TestOutcomesAreLogged(t *testing.T) {
	panicked := &panics.PanicError{Value: "boo", Stack: []byte("goroutine 1")}
	tests := map[string]struct {
		reason  string
		outcome execution.Outcome
		want    map[string]any // besides the names
	}{
		"Permanent": {
			reason: "a permanent failure is an error", outcome: execution.Outcome{Final: true, Err: errOrdinary},
			want: map[string]any{"msg": "Handler failed permanently", "error": "boo"},
		},
		"Later": {
			reason:  "a temporary failure is an error, with the delay",
			outcome: execution.Outcome{Err: errOrdinary, Delay: ptr.To(90 * time.Second)},
			want: map[string]any{
				"msg": "Handler failed temporarily; retrying", "error": "boo", "after": "1m30s",
			},
		},
		"AtOnce": {
			reason:  "a failure without a delay is logged as retried at once",
			outcome: execution.Outcome{Err: errOrdinary},
			want:    map[string]any{"msg": "Handler failed temporarily; retrying at once", "error": "boo"},
		},
		"Blocked": {
			reason: "an object that cannot be decoded is an error", outcome: execution.Outcome{
				Aborted: true, Blocked: true, Err: errOrdinary,
			},
			want: map[string]any{
				"msg": "Cannot call the handler with this object; waiting until the object changes", "error": "boo",
			},
		},
		"Aborted": {
			reason:  "an interruption by the operator is not an error",
			outcome: execution.Outcome{Aborted: true, Err: errOrdinary},
			want: map[string]any{
				"msg": "Handler was interrupted; calling it again later", "error": "boo", "level": 0.0,
			},
		},
		"Ignored": {
			reason:  "an ignored error is logged as an error",
			outcome: execution.Outcome{Final: true, Ignored: errOrdinary},
			want:    map[string]any{"msg": "Handler failed; its errors are ignored", "error": "boo"},
		},
		"Panic": {
			reason: "the stack of a panic is logged", outcome: execution.Outcome{Err: panicked},
			want: map[string]any{
				"msg": "Handler failed temporarily; retrying at once", "error": "panic: boo",
				"stack": "goroutine 1",
			},
		},
		"IgnoredPanic": {
			reason:  "the stack of an ignored panic is logged, too",
			outcome: execution.Outcome{Final: true, Ignored: panicked},
			want: map[string]any{
				"msg": "Handler failed; its errors are ignored", "error": "panic: boo", "stack": "goroutine 1",
			},
		},
		"Unfinished": {
			reason: "an outcome without an error and without an end is logged", outcome: execution.Outcome{},
			want: map[string]any{
				"msg": "Handler is not finished yet", "level": 0.0,
			},
		},
		"Success": {
			reason: "a success is logged", outcome: execution.Outcome{Final: true}, want: map[string]any{
				"msg": "Handler succeeded", "level": 0.0,
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			ctx, lines := logging(t.Context())
			a, chain := loggingChain(tc.outcome)
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
	attempt(ctx, t, wholeChain(nil), a)
	if len(*lines) != 2 {
		t.Fatalf("got %v", *lines)
	}
	want := map[string]any{
		"logger": "", "level": 0.0, "msg": "hello", "handler": "fn", "reason": "delete", "attempt": 3.0,
	}
	if d := cmp.Diff(want, lineOf(t, (*lines)[:1])); d != "" {
		t.Errorf("the lines of a function need the handler and the attempt, counted from one: -want, +got:\n%s", d)
	}
}

// TestLoggingFindsTheStack shows that the stack of a panic is logged, also if a limit wraps its error.
func TestLoggingFindsTheStack(t *testing.T) {
	for name, retries := range map[string]*int{"Ordinary": nil, "Last": ptr.To(1)} {
		t.Run(name, func(t *testing.T) {
			ctx, lines := logging(t.Context())
			a := attemptOf(func(context.Context, *handlers.Invocation) error { panic("boo") })
			a.Limits.Policy.Retries = retries
			attempt(ctx, t, wholeChain(nil), a)
			if stack, _ := lineOf(t, *lines)["stack"].(string); !strings.Contains(stack, "logging_test.go") {
				t.Errorf("the stack must name the line of the panic: %q", stack)
			}
		})
	}
}
