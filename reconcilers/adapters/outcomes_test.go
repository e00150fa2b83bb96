package adapters_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/cause"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
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
	attempt(t.Context(), t, adapters.Chain(calling(), tracing("outer"), tracing("inner")), a)
	want := []string{"before outer", "before inner", "call", "after inner", "after outer"}
	if d := cmp.Diff(want, trace); d != "" {
		t.Errorf("the first adapter is the outermost: -want, +got:\n%s", d)
	}
	if attempt(t.Context(), t, adapters.Chain(calling()), a); len(trace) != len(want)+1 {
		t.Error("a chain without adapters is the reconciler itself")
	}
}

// waiting is a function that ends when it is told to, with an error that says nothing of why.
func waiting(ctx context.Context, _ *handlers.Invocation) error {
	<-ctx.Done()
	return errBoo
}

// The whole chain, as every handler is called through it: what one adapter does must reach the others.
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
			reason: "a panic is an attempt like any other: it is tried again",
			call:   func(context.Context, *handlers.Invocation) error { panic(errBoo) },
			want:   outcome{Err: "panic: boo", Delay: time.Minute},
		},
		"RuntimePanic": {
			reason: "so are those of the runtime", call: func(
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
			reason: "even a missing function ends no process", call: nil,
			want: outcome{
				Err: "panic: runtime error: invalid memory address or nil pointer dereference", Delay: time.Minute,
			},
		},
		"LastPanic": {
			reason: "panics use up the retries", call: func(
				context.Context, *handlers.Invocation,
			) error {
				panic(errBoo)
			}, change: retries(1),
			want: outcome{Final: true, Delay: -1, Err: "gave up after 1 attempt: panic: boo"},
		},
		"IgnoredPanic": {
			reason: "panics are ordinary errors to the mode", call: func(
				context.Context, *handlers.Invocation,
			) error {
				panic(errBoo)
			},
			change: mode(handlers.ErrorsIgnored), want: outcome{Final: true, Delay: -1},
		},
		// Deviation D-timeout-cancels.
		"Interrupted": {
			reason: "at its deadline, a function is cancelled, and has failed by timeout, whatever it says",
			call:   waiting,
			change: timeout(90 * time.Second), want: outcome{
				Final: true, Delay: -1, Err: "timed out after 1m30s: boo",
			},
		},
		"InterruptedIgnored": {
			reason: "a timeout is permanent, so no mode lets it pass", call: waiting,
			change: func(a *execution.Attempt) { timeout(time.Second)(a); mode(handlers.ErrorsIgnored)(a) },
			want:   outcome{Final: true, Delay: -1, Err: "timed out after 1s: boo"},
		},
		"ErrorAfterDeadline": {
			reason: "a function that does not listen is not killed; its error is that of the timeout", call: sleeping(
				2*time.Minute, errBoo,
			),
			change: timeout(time.Minute), want: outcome{
				Final: true, Delay: -1, Err: "timed out after 2m0s: boo",
			},
		},
		"SuccessAfterDeadline": {
			reason: "what is done is done, however late", call: sleeping(
				2*time.Minute, nil,
			), change: timeout(time.Minute),
			want: outcome{Final: true, Delay: -1},
		},
		"PanicAfterDeadline": {
			reason: "a panic on cancellation is no better than an error", change: timeout(time.Minute),
			call: func(ctx context.Context, _ *handlers.Invocation) error { <-ctx.Done(); panic(errBoo) },
			want: outcome{Final: true, Delay: -1, Err: "timed out after 1m0s: panic: boo"},
		},
		"RuntimeCountsForward": {
			reason: "the time of the call itself counts in looking ahead", call: sleeping(
				2*time.Second, errBoo,
			), change: timeout(61 * time.Second),
			want: outcome{
				Final: true, Delay: -1, Err: "gave up, as the next attempt would be after the timeout of 1m1s: boo",
			},
		},
		"Exit": {
			reason: "an attempt cut short by the exit does not count", call: waiting, exits: time.Second,
			want: outcome{Aborted: true, Delay: -1, Err: "boo"},
		},
		"LastExit": {
			reason: "not even if it was the last, or the error is permanent", exits: time.Second, change: retries(1),
			call: func(ctx context.Context, _ *handlers.Invocation) error { <-ctx.Done(); return permanent{ctx.Err()} },
			want: outcome{Aborted: true, Delay: -1, Err: "context canceled"},
		},
		"ExitBeforeDeadline": {
			reason: "the first of two reasons to end is the reason", call: waiting, exits: time.Second, change: timeout(
				time.Minute,
			),
			want: outcome{Aborted: true, Delay: -1, Err: "boo"},
		},
		"DeadlineBeforeExit": {
			reason: "the first of two reasons to end is the reason", call: waiting, exits: time.Hour, change: timeout(
				time.Minute,
			),
			want: outcome{Final: true, Delay: -1, Err: "timed out after 1m0s: boo"},
		},
		"SuccessOnExit": {
			reason: "who finishes in spite of the exit has finished", exits: time.Second, call: sleeping(
				time.Minute, nil,
			),
			want: outcome{Final: true, Delay: -1},
		},
		"UndecodableOnCreate": {
			reason: "nothing gets better by trying again, only by a change of the object", call: returning(
				undecodable{errBoo},
			),
			change: retries(1), want: outcome{Aborted: true, Blocked: true, Delay: -1, Err: "boo"},
		},
		"UndecodableOnDelete": {
			reason: "but nothing may block a deletion without limits: there it is an error to be counted",
			call:   returning(undecodable{errBoo}),
			change: deleting, want: outcome{Delay: time.Minute, Err: "boo"},
		},
		"UndecodableOnDeleteForGood": {
			reason: "so that the limits of the handler end it", call: returning(undecodable{errBoo}),
			change: func(a *execution.Attempt) { deleting(a); mode(handlers.ErrorsPermanent)(a) }, want: outcome{
				Final: true, Delay: -1, Err: "boo",
			},
		},
		"Success": {reason: "no error is a success", call: returning(nil), want: outcome{Final: true, Delay: -1}},
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
				if d := cmp.Diff(tc.want, outcomeOf(attempt(ctx, t, whole(nil), a))); d != "" {
					t.Errorf("%s: -want, +got:\n%s", tc.reason, d)
				}
			})
		})
	}
}

func TestChainHandsOverTheCall(t *testing.T) {
	var got *handlers.Invocation
	a := attemptOf(func(_ context.Context, call *handlers.Invocation) error { got = call; return nil })
	if attempt(t.Context(), t, whole(nil), a); got != &a.Call {
		t.Errorf("the function gets the call of the attempt itself: got %p, want %p", got, &a.Call)
	}
}
