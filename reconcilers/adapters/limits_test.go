package adapters_test

import (
	"context"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kopf-runtime/kopf-runtime/internal/execution"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/internal/panics"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
)

func TestLimits(t *testing.T) {
	tests := map[string]struct {
		reason string
		change func(a *execution.Attempt)
		called bool
		want   outcome
	}{
		"Retries": {
			reason: "a function without retries left is not called", change: func(a *execution.Attempt) {
				a.Limits.Policy.Retries = ptr.To(0)
			},
			want: outcome{Final: true, Delay: -1, Err: "gave up after 0 attempts"},
		},
		"Timeout": {
			reason: "a function without time left is not called", change: func(a *execution.Attempt) {
				a.Limits.Policy.Timeout, a.Limits.Runtime = ptr.To(time.Minute), time.Hour
			},
			want: outcome{Final: true, Delay: -1, Err: "timed out after 1h0m0s"},
		},
		"IgnoredErrors": {
			reason: "limits are not errors of the function, so no mode ignores them", change: func(
				a *execution.Attempt,
			) {
				a.Limits.Policy.Retries, a.Limits.Policy.Errors = ptr.To(0), handlers.ErrorsIgnored
			},
			want: outcome{Final: true, Delay: -1, Err: "gave up after 0 attempts"},
		},
		"Within": {
			reason: "a function within its limits is called", change: func(*execution.Attempt) {}, called: true,
			want: outcome{Delay: -1},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			called := false
			a := attemptOf(func(context.Context, *handlers.Invocation) error { called = true; return nil })
			tc.change(a)
			got := attempt(t.Context(), t, adapters.ChainAdapters(calling(), adapters.Limits), a)
			if d := cmp.Diff(tc.want, outcomeOf(got)); d != "" || called != tc.called {
				t.Errorf("%s: called %v, -want, +got:\n%s", tc.reason, called, d)
			}
		})
	}
}

func TestDeadline(t *testing.T) {
	tests := map[string]struct {
		reason  string
		timeout *time.Duration
		runtime time.Duration
		want    time.Duration // until the deadline; 0 for none
	}{
		"None": {reason: "without a timeout, there is no deadline"},
		"First": {
			reason: "the first attempt has the whole timeout", timeout: ptr.To(time.Minute), want: time.Minute,
		},
		"Later": {
			reason: "the timeout counts from the first attempt", timeout: ptr.To(time.Minute),
			runtime: 50 * time.Second,
			want:    10 * time.Second,
		},
		"Overtime": {
			reason: "without time left, the context has ended at the start", timeout: ptr.To(time.Minute),
			runtime: time.Minute,
			want:    -1,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var left time.Duration
				a := attemptOf(func(ctx context.Context, _ *handlers.Invocation) error {
					if deadline, ok := ctx.Deadline(); ok {
						if left = time.Until(deadline); left <= 0 {
							left = -1
						}
						<-ctx.Done()
						return context.Cause(ctx)
					}
					return nil
				})
				a.Limits.Policy.Timeout, a.Limits.Runtime = tc.timeout, tc.runtime
				_, err := adapters.ChainAdapters(calling(), adapters.Deadline).Reconcile(t.Context(), a)
				//nolint:errorlint // the cause is to be this very one
				if left != tc.want || (tc.want != 0 && err != execution.ErrTimeout) {
					t.Errorf("%s: got %v left, ended by %v", tc.reason, left, err)
				}
			})
		})
	}
}

func TestDeadlineEndsWithTheCall(t *testing.T) {
	var inner context.Context
	//nolint:fatcontext // to look at it later
	a := attemptOf(func(ctx context.Context, _ *handlers.Invocation) error { inner = ctx; return nil })
	a.Limits.Policy.Timeout = ptr.To(time.Hour)
	attempt(t.Context(), t, adapters.ChainAdapters(calling(), adapters.Deadline), a)
	if inner.Err() == nil {
		t.Error("the context must end with the call, for goroutines that the function left behind")
	}
}

func TestErrorClassesMeasureTheCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := attemptOf(func(context.Context, *handlers.Invocation) error { time.Sleep(time.Minute); return nil })
		a.Limits.Runtime = time.Hour
		attempt(t.Context(), t, adapters.ChainAdapters(calling(), adapters.ErrorClasses), a)
		if want := time.Hour + time.Minute; a.Limits.Runtime != want {
			t.Errorf("the runtime must include the time of the call: got %v, want %v", a.Limits.Runtime, want)
		}
	})
}

func TestRecovery(t *testing.T) {
	tests := map[string]struct {
		reason string
		call   handlers.Func
		want   string
	}{
		"Value": {
			reason: "a panic with any value is an error",
			call:   func(context.Context, *handlers.Invocation) error { panic(42) },
			want:   "panic: 42",
		},
		"Nil": {
			reason: "a panic with nil is an error",
			call:   func(context.Context, *handlers.Invocation) error { panic(nil) }, //nolint:govet // that is the case
			want:   (&panics.PanicError{Value: new(runtime.PanicNilError)}).Error(),
		},
		"Error": {reason: "an error is returned as it is", call: returning(errOrdinary), want: "boo"},
		"None":  {reason: "without an error, none is returned", call: returning(nil)},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := adapters.ChainAdapters(calling(), adapters.Recovery).Reconcile(t.Context(), attemptOf(tc.call))
			got := ""
			if err != nil {
				got = err.Error()
			}
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, d)
			}
		})
	}
}

func TestRecoveryKeepsTheResult(t *testing.T) {
	want := reconcile.Result{RequeueAfter: time.Minute}
	inner := adapters.Func(func(context.Context, *execution.Attempt) (reconcile.Result, error) { return want, nil })
	a := attemptOf(nil)
	if got, err := adapters.Recovery(inner).Reconcile(t.Context(), a); err != nil || got != want {
		t.Errorf("Recovery must return the result of the next step: got %v, error %v", got, err)
	}
	if d := cmp.Diff(outcome{Delay: -1}, outcomeOf(a.Outcome)); d != "" {
		t.Errorf("without a panic, the outcome must stay empty: -want, +got:\n%s", d)
	}
}
