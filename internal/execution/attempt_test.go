package execution_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/internal/execution"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
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
			reason: "a change after the end of the attempt is an error",
			do:     func(a *execution.Attempt) error { a.CloseForChanges(); return a.AddTransform(setting("late")) },
		},
		"SetResultAfterEnd": {
			reason: "a result after the end of the attempt is an error", do: func(
				a *execution.Attempt,
			) error {
				a.CloseForChanges()
				return a.SetResult("late")
			},
		},
		"FailingTransform": {
			reason: "a failing change returns its error to the function", do: func(a *execution.Attempt) error {
				return a.AddTransform(func(map[string]any) error { return errOrdinary })
			},
		},
		"ResultIsNotJSON": {
			reason: "a result that is not JSON is an error when it is set", do: func(a *execution.Attempt) error {
				return a.SetResult(func() {})
			},
		},
		"FlushFails": {
			reason: "a failed flush returns its error to the function", do: func(a *execution.Attempt) error {
				a.FlushNow = func(context.Context) error { return errOrdinary }
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
			if a.CloseForChanges(); len(a.UnwrittenTransforms()) > 0 || a.ResultToWrite() != nil ||
				a.Call.Object["late"] != nil {
				t.Errorf("%s: want no trace of it, got %v, %v", tc.reason, a.Call.Object, a.ResultToWrite())
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
			reason: "a failed attempt has no result", set: []any{1},
			outcome: execution.Outcome{Final: true, Err: errOrdinary},
		},
		"Unfinished": {reason: "an attempt that is to be repeated has no result yet", set: []any{1}},
		"Aborted": {
			reason: "an aborted attempt has no result", set: []any{1},
			outcome: execution.Outcome{Aborted: true, Err: errOrdinary},
		},
		"Ignored": {
			reason: "an attempt with an ignored error has no result", set: []any{1},
			outcome: execution.Outcome{Final: true, Ignored: errOrdinary},
		},
		"Running": {
			reason: "an attempt has no result before its function has returned", set: []any{1}, outcome: success,
			running: true,
		},
		"None":      {reason: "an attempt without a set result has no result", outcome: success},
		"Withdrawn": {reason: "setting nil withdraws an earlier result", set: []any{1, nil}, outcome: success},
		"Last": {
			reason: "the last of several results counts", set: []any{1, object{"a": 2}}, outcome: success,
			want: object{"a": int64(2)},
		},
		"Falsy": {reason: "zero is a valid result", set: []any{0}, outcome: success, want: int64(0)},
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
				a.CloseForChanges()
			}
			if d := cmp.Diff(tc.want, a.ResultToWrite()); d != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, d)
			}
		})
	}
}

func TestAttemptRemembers(t *testing.T) {
	a := newAttempt()
	for _, key := range []string{"one", "two"} {
		if err := a.AddTransform(setting(key)); err != nil {
			t.Fatal(err)
		}
	}
	if d := cmp.Diff(object{"one": true, "two": true}, a.Call.Object); d != "" {
		t.Errorf("the changes are not visible at once: -want, +got:\n%s", d)
	}
	first := a.UnwrittenTransforms()
	if err := a.AddTransform(setting("three")); err != nil {
		t.Fatal(err)
	}
	_ = append(first, setting("alien"))
	a.MarkWritten(len(first))
	rest := object{}
	for _, transform := range a.UnwrittenTransforms() {
		if err := transform(rest); err != nil {
			t.Fatal(err)
		}
	}
	if d := cmp.Diff(object{"three": true}, rest); d != "" {
		t.Errorf("want only the change that is not written yet: -want, +got:\n%s", d)
	}
}

func TestAttemptFlush(t *testing.T) {
	a := newAttempt()
	if err := a.Flush(t.Context()); err != nil {
		t.Errorf("want no error of a flush without a writer, got %v", err)
	}
	type key struct{}
	a.FlushNow = func(ctx context.Context) error {
		if ctx.Value(key{}) == nil {
			return errors.New("not the function's context")
		}
		return nil
	}
	if err := a.Flush(context.WithValue(t.Context(), key{}, true)); err != nil {
		t.Errorf("want the flush to get the context of its caller, got %v", err)
	}
}

// TestAttemptIsSafeForGoroutines shows that a checkpoint can read changes while several goroutines of the function
// continue.
func TestAttemptIsSafeForGoroutines(t *testing.T) {
	a := newAttempt()
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() { _ = a.AddTransform(setting("x")) })
		group.Go(func() { _ = a.SetResult("x") })
		group.Go(func() { a.UnwrittenTransforms() })
		group.Go(func() { a.ResultToWrite() })
	}
	group.Wait()
	if got := len(a.UnwrittenTransforms()); got != 8 {
		t.Errorf("got %d changes, want 8", got)
	}
	a.CloseForChanges()
}

// TestAttemptDecides shows that only a success with something to write is reported after the write, because only the
// write can revise it.
func TestAttemptDecides(t *testing.T) {
	success := execution.Outcome{Final: true}
	change := func(a *execution.Attempt) error { return a.AddTransform(setting("x")) }
	for name, tc := range map[string]struct {
		reason   string
		do       func(a *execution.Attempt) error
		outcome  execution.Outcome
		isDirect bool // whether the outcome does not depend on a write
		waits    bool
	}{
		"Changes": {reason: "the write of changes can fail", do: change, outcome: success, waits: true},
		"Result": {reason: "the write of a result can fail", outcome: success, waits: true,
			do: func(a *execution.Attempt) error { return a.SetResult(1) }},
		"Nothing": {reason: "a success without a write is decided at once", outcome: success,
			do: func(*execution.Attempt) error { return nil }},
		"Retried": {reason: "a failure is decided at once, whatever it wrote", do: change,
			outcome: execution.Outcome{Err: errOrdinary}},
		"Failed": {reason: "a permanent failure is decided at once, whatever it wrote", do: change,
			outcome: execution.Outcome{Final: true, Err: errOrdinary}},
		"Direct": {reason: "an outcome that does not depend on a write is decided at once", do: change,
			outcome: success, isDirect: true},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAttempt()
			if err := tc.do(a); err != nil {
				t.Fatal(err)
			}
			a.IsOutcomeDeferred, a.Outcome = !tc.isDirect, tc.outcome
			reports := 0
			a.OnDecided(func() { reports++ })
			if waits := reports == 0; waits != tc.waits {
				t.Errorf("%s: waits for the write: %v, want %v", tc.reason, waits, tc.waits)
			}
			if a.ReportDecided(); reports != 1 {
				t.Errorf("%s: reported %d times, want once", tc.reason, reports)
			}
		})
	}
}
