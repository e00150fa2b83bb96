package adapters_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/execution"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
)

func TestChainOrder(t *testing.T) {
	var trace []string
	tracing := func(name string) adapters.Adapter {
		return func(next adapters.Reconciler) adapters.Reconciler {
			return adapters.Func(func(ctx context.Context, a *execution.Attempt) (reconcile.Result, error) {
				trace = append(trace, "before "+name)
				result, err := next.Reconcile(ctx, a)
				trace = append(trace, "after "+name)
				return result, err
			})
		}
	}
	a := attemptOf(func(context.Context, *handlers.Invocation) error { trace = append(trace, "call"); return nil })
	attempt(t.Context(), t, adapters.ChainAdapters(calling(), tracing("outer"), tracing("inner")), a)
	want := []string{"before outer", "before inner", "call", "after inner", "after outer"}
	if d := cmp.Diff(want, trace); d != "" {
		t.Errorf("the first adapter must be the outermost: -want, +got:\n%s", d)
	}
	if attempt(t.Context(), t, adapters.ChainAdapters(calling()), a); len(trace) != len(want)+1 {
		t.Error("a chain without adapters must be the reconciler itself")
	}
}

// waiting is a function that returns when its context ends, with an error that does not contain the cause.
func waiting(ctx context.Context, _ *handlers.Invocation) error {
	<-ctx.Done()
	return errOrdinary
}

// TestWholeChain shows the outcomes of the whole chain of a handler, where the adapters work together.
func TestWholeChain(t *testing.T) {
	deleting := func(a *execution.Attempt) { a.Call.Cause = &cause.Cause{Reason: cause.Delete, Deleting: true} }
	timeout := func(d time.Duration) func(a *execution.Attempt) {
		return func(a *execution.Attempt) { a.Limits.Policy.Timeout = &d }
	}
	retries := func(n int) func(a *execution.Attempt) {
		return func(a *execution.Attempt) { a.Limits.Policy.Retries = &n }
	}
	mode := func(mode handlers.ErrorsMode) func(a *execution.Attempt) {
		return func(a *execution.Attempt) { a.Limits.Policy.Errors = mode }
	}
	sleeping := func(d time.Duration, err error) handlers.Func {
		return func(context.Context, *handlers.Invocation) error { time.Sleep(d); return err }
	}
	tests := map[string]struct {
		reason string
		call   handlers.Func
		change func(a *execution.Attempt)
		exits  time.Duration // when the operator exits; 0 for never
		want   outcome
	}{
		"Panic": {
			reason: "a panic is retried like an error",
			call:   func(context.Context, *handlers.Invocation) error { panic(errOrdinary) },
			want:   outcome{Err: "panic: boo", Delay: time.Minute},
		},
		"RuntimePanic": {
			reason: "a panic of the runtime is retried like an error", call: func(
				_ context.Context, call *handlers.Invocation,
			) error {
				call.Object["a"].(object)["b"] = 1
				return nil
			},
			want: outcome{
				Err:   "panic: interface conversion: interface {} is nil, not map[string]interface {}",
				Delay: time.Minute,
			},
		},
		"NoFunction": {
			reason: "a missing function is an error and does not end the process", call: nil,
			want: outcome{
				Err: "panic: runtime error: invalid memory address or nil pointer dereference", Delay: time.Minute,
			},
		},
		"LastPanic": {
			reason: "a panic uses up a retry", call: func(
				context.Context, *handlers.Invocation,
			) error {
				panic(errOrdinary)
			}, change: retries(1),
			want: outcome{Final: true, Delay: -1, Err: "gave up after 1 attempt: panic: boo"},
		},
		"IgnoredPanic": {
			reason: "a panic is ignored in the mode that ignores errors", call: func(
				context.Context, *handlers.Invocation,
			) error {
				panic(errOrdinary)
			},
			change: mode(handlers.ErrorsIgnored), want: outcome{Final: true, Delay: -1},
		},
		// Deviation D-timeout-cancels.
		"Interrupted": {
			reason: "a function is cancelled at its deadline and fails with a timeout, whatever it returns",
			call:   waiting,
			change: timeout(90 * time.Second), want: outcome{
				Final: true, Delay: -1, Err: "timed out after 1m30s: boo",
			},
		},
		"InterruptedIgnored": {
			reason: "a timeout is permanent, so no mode ignores it", call: waiting,
			change: func(a *execution.Attempt) { timeout(time.Second)(a); mode(handlers.ErrorsIgnored)(a) },
			want:   outcome{Final: true, Delay: -1, Err: "timed out after 1s: boo"},
		},
		"ErrorAfterDeadline": {
			reason: "an error after the deadline is a timeout; the function was not interrupted", call: sleeping(
				2*time.Minute, errOrdinary,
			),
			change: timeout(time.Minute), want: outcome{
				Final: true, Delay: -1, Err: "timed out after 2m0s: boo",
			},
		},
		"SuccessAfterDeadline": {
			reason: "a success after the deadline is a success", call: sleeping(
				2*time.Minute, nil,
			), change: timeout(time.Minute),
			want: outcome{Final: true, Delay: -1},
		},
		"PanicAfterDeadline": {
			reason: "a panic after the deadline is a timeout, like an error", change: timeout(time.Minute),
			call: func(ctx context.Context, _ *handlers.Invocation) error { <-ctx.Done(); panic(errOrdinary) },
			want: outcome{Final: true, Delay: -1, Err: "timed out after 1m0s: panic: boo"},
		},
		"RuntimeCountsForward": {
			reason: "a retry after the deadline is given up; the time of this call counts", call: sleeping(
				2*time.Second, errOrdinary,
			), change: timeout(61 * time.Second),
			want: outcome{
				Final: true, Delay: -1, Err: "gave up, as the next attempt would be after the timeout of 1m1s: boo",
			},
		},
		"Exit": {
			reason: "an attempt interrupted by an exit does not count", call: waiting, exits: time.Second,
			want: outcome{Aborted: true, Delay: -1, Err: "boo"},
		},
		"LastExit": {
			reason: "an exit interrupts even the last attempt, and one with a permanent error", exits: time.Second,
			change: retries(1),
			call: func(ctx context.Context,
				_ *handlers.Invocation) error {
				<-ctx.Done()
				return permanent{ctx.Err()}
			},
			want: outcome{Aborted: true, Delay: -1, Err: "context canceled"},
		},
		"ExitBeforeDeadline": {
			reason: "an exit before the deadline aborts the attempt", call: waiting, exits: time.Second,
			change: timeout(
				time.Minute,
			),
			want: outcome{Aborted: true, Delay: -1, Err: "boo"},
		},
		"DeadlineBeforeExit": {
			reason: "a deadline before the exit is a timeout", call: waiting, exits: time.Hour, change: timeout(
				time.Minute,
			),
			want: outcome{Final: true, Delay: -1, Err: "timed out after 1m0s: boo"},
		},
		"SuccessOnExit": {
			reason: "a success during an exit is a success", exits: time.Second, call: sleeping(
				time.Minute, nil,
			),
			want: outcome{Final: true, Delay: -1},
		},
		"UndecodableOnCreate": {
			reason: "an object that does not decode blocks the handler until the object changes", call: returning(
				undecodable{errOrdinary},
			),
			change: retries(1), want: outcome{Aborted: true, Blocked: true, Delay: -1, Err: "boo"},
		},
		"UndecodableOnDelete": {
			reason: "a deletion is not blocked by an object that does not decode: the error is retried",
			call:   returning(undecodable{errOrdinary}),
			change: deleting, want: outcome{Delay: time.Minute, Err: "boo"},
		},
		"UndecodableOnDeleteFails": {
			reason: "in a deletion, an object that does not decode is limited like an error",
			call:   returning(undecodable{errOrdinary}),
			change: func(a *execution.Attempt) { deleting(a); mode(handlers.ErrorsPermanent)(a) }, want: outcome{
				Final: true, Delay: -1, Err: "boo",
			},
		},
		"Success": {reason: "a function without an error succeeds", call: returning(nil),
			want: outcome{Final: true, Delay: -1}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				if tc.exits > 0 {
					defer time.AfterFunc(tc.exits, func() { cancel(execution.ErrExiting) }).Stop()
				}
				a := attemptOf(tc.call)
				if tc.change != nil {
					tc.change(a)
				}
				if d := cmp.Diff(tc.want, outcomeOf(attempt(ctx, t, wholeChain(nil), a))); d != "" {
					t.Errorf("%s: -want, +got:\n%s", tc.reason, d)
				}
			})
		})
	}
}

func TestChainHandsOverTheCall(t *testing.T) {
	var got *handlers.Invocation
	a := attemptOf(func(_ context.Context, call *handlers.Invocation) error { got = call; return nil })
	if attempt(t.Context(), t, wholeChain(nil), a); got != &a.Call {
		t.Errorf("the function must get the call of the attempt itself: got %p, want %p", got, &a.Call)
	}
}
