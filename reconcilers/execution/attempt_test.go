package execution_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
)

func newAttempt() *execution.Attempt {
	return &execution.Attempt{Call: handlers.Invocation{Handler: &handlers.Handler{ID: "fn"}, Object: object{}}}
}

func setting(key string) func(map[string]any) error {
	return func(body map[string]any) error { body[key] = true; return nil }
}

func TestAttemptRefuses(t *testing.T) {
	tests := map[string]struct {
		reason string
		do     func(a *execution.Attempt) error
	}{
		"RememberAfterEnd": {
			reason: "a goroutine left behind must learn that nobody writes its changes any more",
			do:     func(a *execution.Attempt) error { a.End(); return a.Remember(setting("late")) },
		},
		"SetResultAfterEnd": {
			reason: "so it is with results", do: func(
				a *execution.Attempt,
			) error {
				a.End()
				return a.SetResult("late")
			},
		},
		"FailingTransform": {
			reason: "the function learns what went wrong with its change", do: func(a *execution.Attempt) error {
				return a.Remember(func(map[string]any) error { return errBoo })
			},
		},
		"ResultIsNotJSON": {
			reason: "better now than in the write that closes the cause", do: func(a *execution.Attempt) error {
				return a.SetResult(func() {})
			},
		},
		"FlushFails": {
			reason: "the function asked for the write, so it gets the answer", do: func(a *execution.Attempt) error {
				a.FlushNow = func(context.Context) error { return errBoo }
				return a.Flush(t.Context())
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			a := newAttempt()
			if err := tc.do(a); err == nil {
				t.Errorf("%s: got no error", tc.reason)
			}
			a.Outcome = execution.Outcome{Final: true}
			if a.End(); len(a.Remembered()) > 0 || a.Result() != nil || a.Call.Object["late"] != nil {
				t.Errorf("%s: nothing of it must remain: %v, %v", tc.reason, a.Call.Object, a.Result())
			}
		})
	}
}

func TestAttemptResult(t *testing.T) {
	success := execution.Outcome{Final: true}
	tests := map[string]struct {
		reason  string
		set     []any
		outcome execution.Outcome
		running bool
		want    any
	}{
		"Failed": {
			reason: "an attempt that failed has no result", set: []any{1},
			outcome: execution.Outcome{Final: true, Err: errBoo},
		},
		"Unfinished": {reason: "an attempt to be repeated has none yet", set: []any{1}},
		"Aborted": {
			reason: "an attempt that does not count has none", set: []any{1},
			outcome: execution.Outcome{Aborted: true, Err: errBoo},
		},
		"Ignored": {
			reason: "an error, even an ignored one, is not a result", set: []any{1},
			outcome: execution.Outcome{Final: true, Ignored: errBoo},
		},
		"Running": {
			reason: "before the function has returned, it may still change its mind", set: []any{1}, outcome: success,
			running: true,
		},
		"None":      {reason: "no result is set, none is delivered", outcome: success},
		"Withdrawn": {reason: "the last word counts, even if it is none", set: []any{1, nil}, outcome: success},
		"Last": {
			reason: "the last word counts", set: []any{1, object{"a": 2}}, outcome: success,
			want: object{"a": int64(2)},
		},
		"Falsy": {reason: "zero is a result", set: []any{0}, outcome: success, want: int64(0)},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			a := newAttempt()
			for _, value := range tc.set {
				if err := a.SetResult(value); err != nil {
					t.Fatal(err)
				}
			}
			a.Outcome = tc.outcome
			if !tc.running {
				a.End()
			}
			if d := cmp.Diff(tc.want, a.Result()); d != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, d)
			}
		})
	}
}

func TestAttemptRemembers(t *testing.T) {
	a := newAttempt()
	for _, key := range []string{"one", "two"} {
		if err := a.Remember(setting(key)); err != nil {
			t.Fatal(err)
		}
	}
	if d := cmp.Diff(object{"one": true, "two": true}, a.Call.Object); d != "" {
		t.Errorf("the next handler sees the changes at once: -want, +got:\n%s", d)
	}
	first := a.Remembered()
	if err := a.Remember(setting("three")); err != nil {
		t.Fatal(err)
	}
	_ = append(first, setting("alien"))
	a.Written(len(first))
	rest := object{}
	for _, transform := range a.Remembered() {
		if err := transform(rest); err != nil {
			t.Fatal(err)
		}
	}
	if d := cmp.Diff(object{"three": true}, rest); d != "" {
		t.Errorf("what was written is dropped, what came meanwhile is kept: -want, +got:\n%s", d)
	}
}

func TestAttemptFlush(t *testing.T) {
	a := newAttempt()
	if err := a.Flush(t.Context()); err != nil {
		t.Errorf("where nothing can be written, flushing does nothing: %v", err)
	}
	type key struct{}
	a.FlushNow = func(ctx context.Context) error {
		if ctx.Value(key{}) == nil {
			return errors.New("not the function's context")
		}
		return nil
	}
	if err := a.Flush(context.WithValue(t.Context(), key{}, true)); err != nil {
		t.Errorf("a flush ends with the context of who asked for it: %v", err)
	}
}

// A checkpoint reads what is remembered while the function goes on, maybe on several goroutines.
func TestAttemptIsSafeForGoroutines(t *testing.T) {
	a := newAttempt()
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() { _ = a.Remember(setting("x")) })
		group.Go(func() { _ = a.SetResult("x") })
		group.Go(func() { a.Remembered() })
		group.Go(func() { a.Result() })
	}
	group.Wait()
	if got := len(a.Remembered()); got != 8 {
		t.Errorf("got %d changes, want 8", got)
	}
	a.End()
}
