package execution_test

import (
	"errors"
	"testing"
	"time"

	"k8s.io/utils/ptr"

	"github.com/kopf-runtime/kopf-runtime/internal/execution"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

// TestTraces shows that the trace of the first attempt is kept while further attempts can follow for the same change.
func TestTraces(t *testing.T) {
	const first, second progress.Trace = "00-01-01-01", "00-02-02-01"
	none := func(string) (*progress.Record, error) { return nil, nil }
	limits := execution.Limits{Backoff: time.Minute}
	retry, done := limits.OutcomeOf(errors.New("not yet")), limits.OutcomeOf(nil)
	retry.Trace, done.Trace = first, first
	waits := limits.PendingOutcome(&execution.PendingError{Wait: progress.Wait{Child: "a", Until: at(60)}})
	waits.Trace = first
	for name, tc := range map[string]struct {
		reason  string
		outcome execution.Outcome
		want    progress.Trace
	}{
		"Retry":   {"a retry joins the trace of the first attempt", retry, first},
		"Waiting": {"the call after a wait joins the trace of the first attempt", waits, first},
		"Success": {"a success ends the trace", done, ""},
		"Aborted": {"an aborted attempt records no trace", execution.Outcome{Aborted: true, Trace: second}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			state, err := execution.RestoreState(none, []string{"h"}, []string{"h"}, "create", at(0))
			if err != nil {
				t.Fatal(err)
			}
			if err := state.ConcludeAttempt("h", tc.outcome, at(0)); err != nil {
				t.Fatal(err)
			}
			h := state.StateOf("h")
			if got := h.AsRecord().Trace; got != tc.want || h.Account().Trace != tc.want {
				t.Errorf("%s: got %q, want %q; %q for the next attempt", tc.reason, got, tc.want, h.Account().Trace)
			}
		})
	}
}

// TestTracesOfOtherCauses shows that a record that continues for another cause does not keep the trace.
func TestTracesOfOtherCauses(t *testing.T) {
	held := progress.Record{Purpose: ptr.To("create"), Retries: ptr.To(int64(1)), Trace: "00-01-01-01"}
	read := func(string) (*progress.Record, error) { return &held, nil }
	for purpose, want := range map[string]progress.Trace{"create": held.Trace, "update": ""} {
		state, err := execution.RestoreState(read, []string{"h"}, []string{"h"}, purpose, at(0))
		if err != nil {
			t.Fatal(err)
		}
		state.MoveToPurpose(purpose)
		if got := state.StateOf("h").AsRecord(); got.Trace != want || *got.Retries != 1 {
			t.Errorf("a record of a creation, for %q: got %q, want %q; %d attempts", purpose, got.Trace, want,
				*got.Retries)
		}
	}
}
