package execution_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	"github.com/kopf-runtime/kopf-runtime/internal/execution"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

// TestConclude shows the record of one handler after one or more attempts.
func TestConclude(t *testing.T) {
	second := time.Second
	tests := map[string]struct {
		reason   string
		outcomes []execution.Outcome // one each second
		want     progress.Record
	}{
		"FailedForGood": {
			reason:   "a permanent failure is recorded with its error",
			outcomes: []execution.Outcome{{Final: true, Err: errOrdinary}},
			want: progress.Record{
				Stopped: ptr.To(at(0)), Retries: ptr.To(int64(1)), Success: ptr.To(false), Failure: ptr.To(true),
				Message: ptr.To("boo"),
			},
		},
		"FailedWithDelay": {
			reason: "the delay of a final outcome is recorded", outcomes: []execution.Outcome{
				{Final: true, Err: errOrdinary, Delay: &second},
			},
			want: progress.Record{
				Stopped: ptr.To(at(0)), Delayed: ptr.To(at(1)), Retries: ptr.To(int64(1)), Success: ptr.To(false),
				Failure: ptr.To(true), Message: ptr.To("boo"),
			},
		},
		"Delayed": {
			reason: "the delay counts from the outcome, not from the start", outcomes: []execution.Outcome{
				{Err: errOrdinary}, {Err: errOrdinary, Delay: &second},
			},
			want: progress.Record{
				Delayed: ptr.To(at(2)), Retries: ptr.To(int64(2)), Success: ptr.To(false), Failure: ptr.To(false),
				Message: ptr.To("boo"),
			},
		},
		"NoDelay": {
			reason: "an attempt without a delay clears the former delay", outcomes: []execution.Outcome{
				{Err: errOrdinary, Delay: &second}, {Err: errOrdinary},
			},
			want: progress.Record{
				Retries: ptr.To(int64(2)), Success: ptr.To(false), Failure: ptr.To(false), Message: ptr.To("boo"),
			},
		},
		"SuccessAfterFailures": {
			reason: "a success clears the message and the delay, but not the attempts", outcomes: []execution.Outcome{
				{Err: errOrdinary, Delay: &second}, {Final: true},
			},
			want: progress.Record{
				Stopped: ptr.To(at(1)), Retries: ptr.To(int64(2)), Success: ptr.To(true), Failure: ptr.To(false),
			},
		},
		"Ignored": {
			reason: "an ignored error is recorded as a success", outcomes: []execution.Outcome{
				{Final: true, Ignored: errOrdinary},
			},
			want: progress.Record{
				Stopped: ptr.To(at(0)), Retries: ptr.To(int64(1)), Success: ptr.To(true), Failure: ptr.To(false),
			},
		},
		"StoppedOnce": {
			reason: "the time of the first final outcome is kept", outcomes: []execution.Outcome{
				{Final: true}, {Final: true, Err: errOrdinary},
			},
			want: progress.Record{
				Stopped: ptr.To(at(0)), Retries: ptr.To(int64(2)), Success: ptr.To(false), Failure: ptr.To(true),
				Message: ptr.To("boo"),
			},
		},
		"Subrefs": {
			reason: "the sub-handlers of all attempts are recorded, sorted, each once",
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
			if got := state.StateOf("a").AsRecord(); !got.Equal(tc.want) {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, cmp.Diff(tc.want.JSONFields(), got.JSONFields()))
			}
		})
	}
}

func TestConcludeLeavesItsInputs(t *testing.T) {
	subrefs := []string{"a/y", "a/x"}
	held := records{"a": {Subrefs: []string{"a/z"}, Message: ptr.To("before")}}
	state := restore(t, held, []string{"a"}, []string{"a"}, "create")
	conclude(t, state, "a", execution.Outcome{Err: errOrdinary, Subrefs: subrefs}, epoch)
	if d := cmp.Diff([]string{"a/y", "a/x"}, subrefs); d != "" {
		t.Errorf("the outcome of the caller was modified: -want, +got:\n%s", d)
	}
	if want := (progress.Record{Subrefs: []string{"a/z"}, Message: ptr.To("before")}); !held["a"].Equal(want) {
		t.Errorf("the record that was read was modified: got %+v", held["a"])
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
		if got := state.StateOf(id).Account().RuntimeAt(at(1)); got != want {
			t.Errorf("the runtime of %q counts from its first selection, or else from now: got %v, want %v",
				id, got, want)
		}
	}
}
