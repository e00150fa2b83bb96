package execution_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	"github.com/kopf-runtime/kopf-runtime/internal/execution"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

type (
	object  = map[string]any
	records = map[string]progress.Record
)

// fetching returns a function that reads records, or nil for missing ones.
func fetching(held records) func(string) (*progress.Record, error) {
	return func(id string) (*progress.Record, error) {
		if record, ok := held[id]; ok {
			return &record, nil
		}
		return nil, nil
	}
}

func restore(t *testing.T, held records, owned, selected []string, purpose string) *execution.State {
	t.Helper()
	state, err := execution.RestoreState(fetching(held), owned, selected, purpose, epoch)
	if err != nil {
		t.Fatalf("restoring: %v", err)
	}
	return state
}

func conclude(t *testing.T, state *execution.State, id string, o execution.Outcome, now time.Time) {
	t.Helper()
	if err := state.ConcludeAttempt(id, o, now); err != nil {
		t.Fatalf("concluding: %v", err)
	}
}

// stateSummary is the state of a handler in a comparable form.
type stateSummary struct {
	ID, Purpose                        string
	Active, Success, Failure, Awakened bool
	Retries                            int
	Message                            string
}

func accounts(state *execution.State, now time.Time) []stateSummary {
	var all []stateSummary
	for _, e := range state.AllStates() {
		a := stateSummary{ID: e.ID, Purpose: e.Purpose, Active: e.Active, Success: e.Success, Failure: e.Failure,
			Awakened: e.Account().WaitReason(now).Reason == "", Retries: e.Retries}
		if e.Message != nil {
			a.Message = *e.Message
		}
		all = append(all, a)
	}
	return all
}

func TestRestoreFails(t *testing.T) {
	malformed := errors.New("not a record")
	_, err := execution.RestoreState(func(id string) (*progress.Record, error) {
		if id == "b" {
			return nil, malformed
		}
		return nil, nil
	}, []string{"a", "b"}, []string{"a"}, "create", epoch)
	if !errors.Is(err, malformed) {
		t.Fatalf("want the error of a malformed record, even of a handler that is not selected, got %v", err)
	}
	if d := cmp.Diff(`reading the progress of handler "b": not a record`, err.Error()); d != "" {
		t.Errorf("want the handler named in the error: -want, +got:\n%s", d)
	}
}

func TestRestore(t *testing.T) {
	tests := map[string]struct {
		reason          string
		held            records
		owned, selected []string
		want            []stateSummary
	}{
		"NotOwned": {
			reason: "records of handlers that are not owned are not read", held: records{
				"x": {Success: ptr.To(true)},
			}, owned: []string{"a"},
		},
		"Passive": {
			reason: "records of handlers that are not selected are loaded, as they may have to be removed",
			held: records{
				"a": {Retries: ptr.To(int64(2)), Purpose: ptr.To("create")},
			}, owned: []string{"a", "b"}, selected: []string{"b"},
			want: []stateSummary{
				{ID: "a", Purpose: "create", Retries: 2, Awakened: true},
				{ID: "b", Purpose: "update", Active: true, Awakened: true},
			},
		},
		"SharedID": {
			reason: "two handlers with the same id share one record", held: records{
				"a": {Retries: ptr.To(int64(1)), Purpose: ptr.To("update")},
			},
			owned: []string{"a", "a"}, selected: []string{"a", "a"},
			want: []stateSummary{{ID: "a", Purpose: "update", Active: true, Awakened: true, Retries: 1}},
		},
		"SharedIDAmongOthers": {
			reason: "handlers after a shared id keep their own records", held: records{
				"a": {Purpose: ptr.To("update")}, "b": {Purpose: ptr.To("update")},
			},
			owned: []string{"a", "a", "b"}, want: []stateSummary{
				{ID: "a", Purpose: "update", Awakened: true}, {ID: "b", Purpose: "update", Awakened: true},
			},
		},
		"SharedNewID": {
			reason: "two new handlers with the same id share one record",
			owned:  []string{"a", "a"}, selected: []string{"a", "a"},
			want: []stateSummary{{ID: "a", Purpose: "update", Active: true, Awakened: true}},
		},
		"Order": {
			reason: "handlers with records come first, in the order of ownership, then new ones as selected",
			held:   records{"c": {}, "b": {}}, owned: []string{"a", "b", "c", "d"}, selected: []string{"d", "a"},
			want: []stateSummary{{ID: "b", Awakened: true}, {ID: "c", Awakened: true},
				{ID: "d", Purpose: "update", Active: true, Awakened: true},
				{ID: "a", Purpose: "update", Active: true, Awakened: true}},
		},
		"Failed": {
			reason: "a failure is as final as a success", held: records{
				"a": {Failure: ptr.To(true), Message: ptr.To("boo"), Purpose: ptr.To("update")},
			},
			owned: []string{"a"}, selected: []string{"a"}, want: []stateSummary{
				{ID: "a", Purpose: "update", Active: true, Failure: true, Message: "boo"},
			},
		},
		"AnyPurpose": {
			reason: "a record without a purpose belongs to any cause", held: records{"a": {Success: ptr.To(true)}},
			owned: []string{"a"}, selected: []string{"a"}, want: []stateSummary{{ID: "a", Active: true, Success: true}},
		},
		"Sleeping": {
			reason: "a recorded delay continues after a restart", held: records{"a": {Delayed: ptr.To(at(1))}},
			owned: []string{"a"}, selected: []string{"a"}, want: []stateSummary{{ID: "a", Active: true}},
		},
		"SleptEnough": {
			reason: "a handler is due at the exact end of its delay", held: records{"a": {Delayed: ptr.To(epoch)}},
			owned: []string{"a"}, selected: []string{"a"},
			want: []stateSummary{{ID: "a", Active: true, Awakened: true}},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			state := restore(t, tc.held, tc.owned, tc.selected, "update")
			if d := cmp.Diff(tc.want, accounts(state, epoch)); d != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, d)
			}
		})
	}
}

func TestStateQuestions(t *testing.T) {
	delayed := execution.Outcome{Err: errOrdinary, Delay: ptr.To(10 * time.Second)}
	blocked := execution.Outcome{Aborted: true, Blocked: true, Err: errOrdinary}
	tests := map[string]struct {
		reason   string
		held     records
		selected []string
		outcomes map[string]execution.Outcome
		done     bool
		delays   []time.Duration
	}{
		"Nothing": {reason: "a state without selected handlers is done", done: true},
		"Begun": {
			reason: "the delay of an attempt counts from its end", selected: []string{"a"},
			outcomes: map[string]execution.Outcome{"a": delayed}, delays: []time.Duration{10 * time.Second},
		},
		"NotBegun": {
			reason:   "a selected handler without attempts is due at once",
			selected: []string{"a"}, delays: []time.Duration{0},
		},
		"Passive": {
			reason: "a handler that is not selected is not awaited",
			held:   records{"a": {Retries: ptr.To(int64(1)), Delayed: ptr.To(at(5))}}, done: true,
		},
		"Finished": {
			reason: "a success and a failure both finish a handler", selected: []string{"a", "b"}, done: true,
			outcomes: map[string]execution.Outcome{"a": {Final: true}, "b": {Final: true, Err: errOrdinary}},
		},
		"Blocked": {
			reason: "a blocked handler has no delay, and the other one is due at once", selected: []string{"a", "b"},
			outcomes: map[string]execution.Outcome{"a": blocked}, delays: []time.Duration{0},
		},
		"Aborted": {
			reason:   "an aborted attempt leaves its handler due at once",
			selected: []string{"a"}, outcomes: map[string]execution.Outcome{
				"a": {Aborted: true, Err: errOrdinary},
			},
			delays: []time.Duration{0},
		},
		"Overslept": {
			reason: "an expired delay is zero, not negative",
			held:   records{"a": {Delayed: ptr.To(at(-5))}}, selected: []string{"a"},
			delays: []time.Duration{0},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			state := restore(t, tc.held, []string{"a", "b"}, tc.selected, "create")
			for id, outcome := range tc.outcomes {
				conclude(t, state, id, outcome, epoch)
			}
			if d := cmp.Diff(tc.delays, state.NextDelays(epoch)); d != "" || state.AllFinished() != tc.done {
				t.Errorf("%s: done %v, delays -want, +got:\n%s", tc.reason, state.AllFinished(), d)
			}
		})
	}
}

func TestConcludeUnknown(t *testing.T) {
	state := restore(t, nil, []string{"a"}, []string{"a"}, "create")
	if err := state.ConcludeAttempt("z", execution.Outcome{Final: true}, epoch); err == nil {
		t.Error("want an error for an outcome of an unknown handler")
	}
}

func TestConcludeAbortedLeavesNoTrace(t *testing.T) {
	tests := map[string]struct {
		reason  string
		outcome execution.Outcome
		want    stateSummary
	}{
		"Aborted": {
			reason: "an aborted attempt leaves no trace, and its handler is due", outcome: execution.Outcome{
				Aborted: true, Final: true, Err: errOrdinary,
			},
			want: stateSummary{ID: "a", Purpose: "create", Active: true, Awakened: true},
		},
		"Blocked": {
			reason: "a blocked handler is not due again in this pass", outcome: execution.Outcome{
				Aborted: true, Blocked: true, Err: errOrdinary,
			},
			want: stateSummary{ID: "a", Purpose: "create", Active: true},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			state := restore(t, nil, []string{"a"}, []string{"a"}, "create")
			before := state.StateOf("a").AsRecord()
			conclude(t, state, "a", tc.outcome, at(5))
			if d := cmp.Diff(
				[]stateSummary{tc.want}, accounts(state, at(5)),
			); d != "" || !before.Equal(state.StateOf("a").AsRecord()) {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, d)
			}
		})
	}
}

func TestCountsOfBoth(t *testing.T) {
	state := restore(
		t, records{"a": {Success: ptr.To(true), Failure: ptr.To(true)}, "b": {}}, []string{"a", "b"},
		[]string{"a", "b"}, "create",
	)
	if got, _ := state.CountByPurpose(); got != (execution.Counts{Success: 1, Failure: 1, Running: 1}) {
		t.Errorf("a record with success and failure is counted as both: got %+v", got)
	}
}
