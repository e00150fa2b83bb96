package activities_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/activities"
	"github.com/kopf-runtime/kopf-runtime/internal/execution"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
)

var errBoo = errors.New("boo")

// retryLater is an error that requests another attempt after a delay.
type retryLater struct{ delay time.Duration }

func (retryLater) Error() string               { return "later" }
func (l retryLater) RetryAfter() time.Duration { return l.delay }

type function = func(context.Context, *handlers.Invocation) (any, error)

func returning(value any, err error) function {
	return func(context.Context, *handlers.Invocation) (any, error) { return value, err }
}

// waitForContext returns when its context ends; deaf ignores its context for an hour.
func waitForContext(ctx context.Context, _ *handlers.Invocation) (any, error) {
	<-ctx.Done()
	return nil, context.Cause(ctx)
}

func ignoreContext(context.Context, *handlers.Invocation) (any, error) {
	time.Sleep(time.Hour)
	return nil, nil
}

func TestRun(t *testing.T) {
	exitAt := func(after time.Duration) func(context.Context) (context.Context, context.CancelFunc) {
		return func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(ctx)
			time.AfterFunc(after, cancel)
			return ctx, cancel
		}
	}
	tests := map[string]struct {
		reason string
		policy handlers.Policy
		call   function
		end    func(context.Context) (context.Context, context.CancelFunc)
		want   string
		after  time.Duration

		abandoned bool
	}{
		"Panic": {
			reason: "a panic is retried like any error, up to the limit of attempts", call: func(
				context.Context, *handlers.Invocation,
			) (any, error) {
				panic("boo")
			},
			policy: handlers.Policy{Retries: ptr.To(2)}, after: time.Minute,
			want: `startup: handler "one" failed: gave up after 2 attempts: panic: boo`,
		},
		"Goexit": {
			reason: "a function that ends its goroutine fails the attempt like an error", call: func(
				context.Context, *handlers.Invocation,
			) (any, error) {
				runtime.Goexit()
				return nil, nil
			},
			policy: handlers.Policy{Retries: ptr.To(2)}, after: time.Minute,
			want: `startup: handler "one" failed: gave up after 2 attempts: the function ended its goroutine by ` +
				`runtime.Goexit`,
		},
		"Timeout": {
			reason: "the timeout of the handler ends its context", call: waitForContext,
			policy: handlers.Policy{Timeout: ptr.To(time.Second)}, after: time.Second,
			want: `startup: handler "one" failed: timed out after 1s: the handler has timed out`,
		},
		"ExitWhileRunning": {
			reason: "exiting ends the context of the running handler and waits for it", call: waitForContext,
			end:   exitAt(time.Second),
			after: time.Second, want: `startup: the operator is exiting; not finished: "one", "two"`,
		},
		"ExitWhileSleeping": {
			reason: "exiting interrupts a retry delay and reports the last error",
			call:   returning(nil, retryLater{time.Hour}),
			end:    exitAt(time.Minute), after: time.Minute,
			want: `startup: the operator is exiting; not finished: "one" (later)`,
		},
		"ExitDeaf": {
			reason: "a handler that ignores its context is abandoned after the grace period", call: ignoreContext,
			end:   exitAt(time.Second),
			after: time.Second + activities.GracePeriod,
			want: `startup: the operator is exiting; not finished: "one", "two"; handler "one" is abandoned: it ` +
				`does not return though its context has ended`,
		},
		"ExitTooLate": {
			reason: "a handler that succeeds while exiting counts as finished", call: func(
				context.Context, *handlers.Invocation) (any, error,
			) {
				time.Sleep(time.Second)
				return nil, nil
			},
			end: exitAt(500 * time.Millisecond), after: time.Second,
			want: `startup: the operator is exiting; not finished: "two"`,
		},
		"TimeoutDeaf": {
			reason: "a handler that ignores its own timeout is abandoned after the grace period", call: ignoreContext,
			policy: handlers.Policy{Timeout: ptr.To(time.Minute)}, abandoned: true,
			after: time.Minute + activities.GracePeriod,
			want: `startup: the handler has timed out; not finished: "one", "two"; handler "one" is abandoned: it ` +
				`does not return though its context has ended`,
		},
		"NoTimeLeft": {
			reason: "a retry delay beyond the deadline ends the activity at once",
			call:   returning(nil, retryLater{time.Minute}),
			end: func(ctx context.Context) (context.Context, context.CancelFunc) {
				return context.WithTimeout(ctx, 30*time.Second)
			},
			want: `startup: no time is left for another attempt; not finished: "one" (later)`,
		},
		"OwnCause": {
			reason: "the cause of the context's end is reported in the error", call: waitForContext, after: time.Second,
			end: func(ctx context.Context) (context.Context, context.CancelFunc) {
				return context.WithTimeoutCause(ctx, time.Second, fmt.Errorf("too long: %w", execution.ErrExiting))
			},
			want: `startup: too long: the operator is exiting; not finished: "one", "two"`,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began, ctx := time.Now(), t.Context()
				if tc.end != nil {
					var cancel context.CancelFunc
					ctx, cancel = tc.end(ctx)
					defer cancel()
				}
				a := activities.ActivityHandlers{Name: activities.Startup, Handlers: []*adapters.HandlerChain{
					acting(activities.Startup, "one", tc.policy, tc.call),
					acting(activities.Startup, "two", handlers.Policy{}, returning(nil, nil)),
				}}
				results, err := a.Run(ctx)
				if err == nil || results != nil {
					t.Fatalf("%s: got %v, error %v", tc.reason, results, err)
				}
				if d := cmp.Diff(tc.want, err.Error()); d != "" {
					t.Errorf("%s: -want, +got:\n%s", tc.reason, d)
				}
				if took := time.Since(began); took != tc.after {
					t.Errorf("%s: took %s, want %s", tc.reason, took, tc.after)
				}
				time.Sleep(time.Hour) // until deaf has returned, too
				var interrupted *activities.InterruptedError
				if got := errors.As(err, &interrupted); got != (tc.end != nil || tc.abandoned) {
					t.Errorf("%s: interrupted: %t: %v", tc.reason, got, err)
				}
			})
		})
	}
}

func TestRunReportsAllFailures(t *testing.T) {
	a := activities.ActivityHandlers{Name: activities.Cleanup}
	for _, id := range []string{"one", "two"} {
		permanent := handlers.Policy{Errors: handlers.ErrorsPermanent}
		a.Handlers = append(a.Handlers, acting(a.Name, id, permanent, returning(nil, errBoo)))
	}
	_, err := a.Run(t.Context())
	if !errors.Is(err, errBoo) || strings.Count(err.Error(), "boo") != 2 {
		t.Errorf("the failure of one handler must not hide that of the other: got %v", err)
	}
}

func TestBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, calls := time.Now(), 0
		a := activities.ActivityHandlers{Name: activities.Startup, Backoff: time.Second,
			Handlers: []*adapters.HandlerChain{
				acting(activities.Startup, "one", handlers.Policy{}, func(
					_ context.Context, call *handlers.Invocation,
				) (any, error) {
					if calls++; call.Retry < 2 {
						return nil, errBoo
					}
					return "done", nil
				}),
			}}
		got, err := a.Run(t.Context())
		if d := cmp.Diff(map[string]any{"one": "done"}, got); d != "" || err != nil {
			t.Errorf("error %v, -want, +got:\n%s", err, d)
		}
		if took := time.Since(began); calls != 3 || took != 2*time.Second {
			t.Errorf("the operator's backoff must be the default: %d calls in %s", calls, took)
		}
	})
}

// TestHandlersSleepApart shows that each handler has its own retry delay: a longer one does not postpone other
// handlers. A handler that does not succeed has no result.
func TestHandlersSleepApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, calls := time.Now(), []string{}
		sleeping := func(id string, delays ...time.Duration) *adapters.HandlerChain {
			return acting(activities.Startup, id, handlers.Policy{}, func(
				_ context.Context, call *handlers.Invocation,
			) (any, error) {
				calls = append(calls, fmt.Sprintf("%s %v", id, time.Since(began)))
				if call.Retry < len(delays) {
					return "half", retryLater{delays[call.Retry]}
				}
				return nil, nil
			})
		}
		ignoring := handlers.Policy{Errors: handlers.ErrorsIgnored}
		a := activities.ActivityHandlers{Name: activities.Startup, Handlers: []*adapters.HandlerChain{
			sleeping("slow", time.Minute), sleeping("quick", 10*time.Second, 10*time.Second), sleeping("instant", 0),
			acting(activities.Startup, "ignored", ignoring, returning("half", errBoo)),
		}}
		results, err := a.Run(t.Context())
		want := []string{
			"slow 0s", "quick 0s", "instant 0s", "instant 0s", "quick 10s", "quick 20s", "slow 1m0s",
		}
		if d := cmp.Diff(want, calls); d != "" || err != nil || len(results) > 0 {
			t.Errorf("results %v, error %v; calls, -want, +got:\n%s", results, err, d)
		}
	})
}

func TestGraceful(t *testing.T) {
	for reason, tc := range map[string]struct {
		err  *activities.InterruptedError
		want bool
	}{
		"an interruption alone is graceful":    {&activities.InterruptedError{}, true},
		"an abandoned handler is not graceful": {&activities.InterruptedError{AbandonedHandler: "one"}, false},
		"a handler that failed before the interruption is not graceful": {
			&activities.InterruptedError{Failures: errBoo}, false,
		},
	} {
		if got := tc.err.IsOnlyInterrupted(); got != tc.want {
			t.Errorf("%s: got %v", reason, got)
		}
	}
}
