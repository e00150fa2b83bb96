package execution_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

// The account of one handler through its attempts, in the form in which it is persisted.
func TestConclude(t *testing.T) {
	second := time.Second
	tests := map[string]struct {
		reason   string
		outcomes []execution.Outcome // one each second
		want     progress.Record
	}{
		"FailedForGood": {
			reason: "the error is kept for whoever looks", outcomes: []execution.Outcome{{Final: true, Err: errBoo}},
			want: progress.Record{
				Stopped: ptr.To(at(0)), Retries: ptr.To(int64(1)), Success: ptr.To(false), Failure: ptr.To(true),
				Message: ptr.To("boo"),
			},
		},
		"FailedWithDelay": {
			reason: "a delay is remembered, though nobody waits for what is final", outcomes: []execution.Outcome{
				{Final: true, Err: errBoo, Delay: &second},
			},
			want: progress.Record{
				Stopped: ptr.To(at(0)), Delayed: ptr.To(at(1)), Retries: ptr.To(int64(1)), Success: ptr.To(false),
				Failure: ptr.To(true), Message: ptr.To("boo"),
			},
		},
		"Delayed": {
			reason: "the delay counts from the outcome, not from the start", outcomes: []execution.Outcome{
				{Err: errBoo}, {Err: errBoo, Delay: &second},
			},
			want: progress.Record{
				Delayed: ptr.To(at(2)), Retries: ptr.To(int64(2)), Success: ptr.To(false), Failure: ptr.To(false),
				Message: ptr.To("boo"),
			},
		},
		"NoDelay": {
			reason: "a former delay is over", outcomes: []execution.Outcome{
				{Err: errBoo, Delay: &second}, {Err: errBoo},
			},
			want: progress.Record{
				Retries: ptr.To(int64(2)), Success: ptr.To(false), Failure: ptr.To(false), Message: ptr.To("boo"),
			},
		},
		"SuccessAfterFailures": {
			reason: "a success clears the message and the delay, not the count", outcomes: []execution.Outcome{
				{Err: errBoo, Delay: &second}, {Final: true},
			},
			want: progress.Record{
				Stopped: ptr.To(at(1)), Retries: ptr.To(int64(2)), Success: ptr.To(true), Failure: ptr.To(false),
			},
		},
		"Ignored": {
			reason: "an ignored error is a success on the record", outcomes: []execution.Outcome{
				{Final: true, Ignored: errBoo},
			},
			want: progress.Record{
				Stopped: ptr.To(at(0)), Retries: ptr.To(int64(1)), Success: ptr.To(true), Failure: ptr.To(false),
			},
		},
		"StoppedOnce": {
			reason: "when it finished first is when it finished", outcomes: []execution.Outcome{
				{Final: true}, {Final: true, Err: errBoo},
			},
			want: progress.Record{
				Stopped: ptr.To(at(0)), Retries: ptr.To(int64(2)), Success: ptr.To(false), Failure: ptr.To(true),
				Message: ptr.To("boo"),
			},
		},
		"Subrefs": {
			reason: "all sub-handlers ever met are kept, sorted, each once",
			outcomes: []execution.Outcome{
				{Subrefs: []string{"a/y", "a/x"}}, {}, {Final: true, Subrefs: []string{"a/x", "a/w"}},
			},
			want: progress.Record{Stopped: ptr.To(at(2)), Retries: ptr.To(int64(3)), Success: ptr.To(true),
				Failure: ptr.To(false),
				Subrefs: []string{"a/w", "a/x", "a/y"}},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			state := restore(t, nil, []string{"a"}, []string{"a"}, "update")
			for i, outcome := range tc.outcomes {
				conclude(t, state, "a", outcome, at(float64(i)))
			}
			tc.want.Started, tc.want.Purpose = &epoch, ptr.To("update")
			if got := state.Handler("a").Record(); !got.Equal(tc.want) {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, cmp.Diff(tc.want.Fields(), got.Fields()))
			}
		})
	}
}

func TestConcludeLeavesItsInputs(t *testing.T) {
	subrefs := []string{"a/y", "a/x"}
	held := records{"a": {Subrefs: []string{"a/z"}, Message: ptr.To("before")}}
	state := restore(t, held, []string{"a"}, []string{"a"}, "create")
	conclude(t, state, "a", execution.Outcome{Err: errBoo, Subrefs: subrefs}, epoch)
	if d := cmp.Diff([]string{"a/y", "a/x"}, subrefs); d != "" {
		t.Errorf("the outcome is the caller's: -want, +got:\n%s", d)
	}
	if want := (progress.Record{Subrefs: []string{"a/z"}, Message: ptr.To("before")}); !held["a"].Equal(want) {
		t.Errorf("the record that was read is shared: got %+v", held["a"])
	}
}

func TestHandlerStateRuntime(t *testing.T) {
	state := restore(
		t, records{"old": {Started: ptr.To(at(-3600))}, "undated": {}}, []string{"old", "undated"}, []string{"new"},
		"create",
	)
	for id, want := range map[string]time.Duration{
		"old": time.Hour + time.Second, "undated": time.Second, "new": time.Second,
	} {
		if got := state.Handler(id).Account().Runtime(at(1)); got != want {
			t.Errorf("the time of %q runs from its first selection, or else from now: got %v, want %v", id, got, want)
		}
	}
}
