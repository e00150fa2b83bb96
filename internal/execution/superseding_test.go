package execution_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	"github.com/kopf-runtime/kopf-runtime/internal/execution"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

func TestRepurpose(t *testing.T) {
	tests := map[string]struct {
		reason      string
		held        progress.Record
		selected    []string
		superseding bool
		leftovers   bool
		want        progress.Record
	}{
		"Success": {
			reason: "a success for another cause is repeated, with its start and attempts kept",
			held: progress.Record{
				Purpose: ptr.To("create"), Started: ptr.To(at(-9)), Stopped: ptr.To(at(-1)), Success: ptr.To(true),
				Retries: ptr.To(int64(1)),
			},
			selected: []string{"a"}, superseding: true,
			want: progress.Record{
				Purpose: ptr.To("update"), Started: ptr.To(at(-9)), Success: ptr.To(false), Failure: ptr.To(false),
				Retries: ptr.To(int64(1)),
			},
		},
		"Failure": {
			reason: "a failure for another cause is repeated, with its message kept until the next attempt",
			held: progress.Record{
				Purpose: ptr.To("create"), Started: ptr.To(at(-9)), Stopped: ptr.To(at(-1)), Failure: ptr.To(true),
				Message: ptr.To("boo"),
			},
			selected: []string{"a"}, superseding: true,
			want: progress.Record{
				Purpose: ptr.To("update"), Started: ptr.To(at(-9)), Success: ptr.To(false), Failure: ptr.To(false),
				Retries: ptr.To(int64(0)), Message: ptr.To("boo"),
			},
		},
		"Sleeping": {
			reason: "the delay of another cause is kept",
			held: progress.Record{
				Purpose: ptr.To("create"), Started: ptr.To(at(-9)), Delayed: ptr.To(at(9)), Retries: ptr.To(int64(3)),
			},
			selected: []string{"a"}, superseding: true,
			want: progress.Record{
				Purpose: ptr.To("update"), Started: ptr.To(at(-9)), Delayed: ptr.To(at(9)), Success: ptr.To(false),
				Failure: ptr.To(false), Retries: ptr.To(int64(3)),
			},
		},
		"SamePurpose": {
			reason: "a success for the same cause is kept", selected: []string{"a"},
			held: progress.Record{
				Purpose: ptr.To("update"), Started: &epoch, Stopped: &epoch, Success: ptr.To(true),
				Retries: ptr.To(int64(1)),
			},
			want: progress.Record{
				Purpose: ptr.To("update"), Started: &epoch, Stopped: &epoch, Success: ptr.To(true),
				Failure: ptr.To(false), Retries: ptr.To(int64(1)),
			},
		},
		"AnyPurpose": {
			reason: "a success without a purpose counts for any cause", selected: []string{"a"},
			held: progress.Record{Started: &epoch, Stopped: &epoch, Success: ptr.To(true), Retries: ptr.To(int64(1))},
			want: progress.Record{
				Purpose: ptr.To("update"), Started: &epoch, Stopped: &epoch, Success: ptr.To(true),
				Failure: ptr.To(false), Retries: ptr.To(int64(1)),
			},
		},
		"Unselected": {
			reason:      "a record of a handler that is not selected is left over unchanged",
			superseding: true, leftovers: true,
			held: progress.Record{
				Purpose: ptr.To("create"), Started: &epoch, Success: ptr.To(true), Retries: ptr.To(int64(1)),
			},
			want: progress.Record{
				Purpose: ptr.To("create"), Started: &epoch, Success: ptr.To(true), Failure: ptr.To(false),
				Retries: ptr.To(int64(1)),
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			state := restore(t, records{"a": tc.held}, []string{"a"}, tc.selected, "update")
			if got := state.IsSuperseding(); got != tc.superseding {
				t.Errorf("%s: superseding is %v", tc.reason, got)
			}
			if got := state.MoveToPurpose("update"); got != tc.leftovers {
				t.Errorf("%s: leftovers are %v", tc.reason, got)
			}
			if got := state.StateOf("a").AsRecord(); !got.Equal(tc.want) {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, cmp.Diff(tc.want.JSONFields(), got.JSONFields()))
			}
		})
	}
}

func TestRevise(t *testing.T) {
	refused := execution.Outcome{Err: errOrdinary, Delay: ptr.To(time.Minute)}
	state := restore(t, nil, []string{"a"}, []string{"a"}, "create")
	conclude(t, state, "a", execution.Outcome{Err: errOrdinary, Subrefs: []string{"a/x"}}, epoch)
	before := *state.StateOf("a")
	conclude(t, state, "a", execution.Outcome{Final: true, Subrefs: []string{"a/y"}}, at(1))

	state.ReviseOutcome("z", before, refused, at(1))
	state.ReviseOutcome("a", before, refused, at(1))
	want := []stateSummary{{ID: "a", Purpose: "create", Active: true, Retries: 2, Message: "boo"}}
	if d := cmp.Diff(want, accounts(state, at(1))); d != "" {
		t.Errorf("want the second attempt failed and counted once: -want, +got:\n%s", d)
	}
	if e := state.StateOf("a"); e.Stopped != nil || !e.Delayed.Equal(at(61)) || !cmp.Equal([]string{"a/x"}, e.Subrefs) {
		t.Errorf("want nothing of the revised outcome, got %+v", e)
	}
}

func TestReviseUnknownHandler(t *testing.T) {
	state := restore(t, nil, []string{"a"}, nil, "create")
	state.ReviseOutcome("a", execution.HandlerState{ID: "a"}, execution.Outcome{Err: errOrdinary}, epoch)
	if len(state.AllStates()) != 0 {
		t.Error("revising an unknown handler has created an account")
	}
}

// TestReviseOfAFormerPass shows that outcomes of a former pass are revised when the present pass writes them.
func TestReviseOfAFormerPass(t *testing.T) {
	former := restore(
		t, records{"a": {Purpose: ptr.To("create"), Retries: ptr.To(int64(1))}}, []string{"a"}, nil, "create",
	)
	state := restore(t, nil, []string{"a"}, []string{"a"}, "create")
	state.ReviseOutcome("a", *former.StateOf("a"), execution.Outcome{Err: errOrdinary, Delay: ptr.To(time.Minute)},
		epoch)
	want := []stateSummary{{ID: "a", Purpose: "create", Active: true, Retries: 2, Message: "boo"}}
	if d := cmp.Diff(want, accounts(state, epoch)); d != "" {
		t.Errorf("want the selection of the present pass: -want, +got:\n%s", d)
	}
	to := &recordingStorage{}
	if err := state.StoreChanged(to, nil, nil); err != nil || !cmp.Equal([]string{"a"}, to.stored) {
		t.Errorf("want the revised record stored, got %v, error %v", to.stored, err)
	}
}
