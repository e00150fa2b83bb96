package execution_test

import (
	"errors"
	"testing"
	"time"

	"k8s.io/utils/ptr"

	"github.com/kopf-runtime/kopf-runtime/internal/execution"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

func TestContinues(t *testing.T) {
	began := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	tried := func(retries int64, text string) *progress.Record {
		return &progress.Record{
			Started: &began, Purpose: ptr.To("update"), Retries: &retries, Message: &text, Success: ptr.To(false),
			Failure: ptr.To(false),
		}
	}
	type records map[string]*progress.Record
	tests := map[string]struct {
		reason        string
		before, after records
		want          bool
	}{
		"None": {"an object without records is unchanged", records{}, records{}, true},
		"Same": {"an object with the same record is unchanged",
			records{"a": tried(1, "x")}, records{"a": tried(1, "x")}, true},
		"CutText": {"a record with a shortened message is unchanged",
			records{"a": tried(1, "x")}, records{"a": tried(1, "")}, true},
		"New": {"a new record of another process is a change", records{}, records{"a": tried(1, "x")}, false},
		"Later": {"a further attempt of another process is a change",
			records{"a": tried(1, "x")}, records{"a": tried(2, "x")}, false},
		"Gone": {"a record that another process has removed is a change",
			records{"a": tried(1, "x")}, records{}, false},
		"NotSelected": {"a new record of a handler that is not selected is a change",
			records{}, records{"b": tried(1, "x")}, false},
		"NotSelectedAndSame": {
			"the same record of a handler that is not selected is unchanged",
			records{"b": tried(1, "x")}, records{"b": tried(1, "x")}, true,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			read := func(from records) func(id string) (*progress.Record, error) {
				return func(id string) (*progress.Record, error) { return from[id], nil }
			}
			s, err := execution.RestoreState(read(tc.before), []string{"a", "b"}, []string{"a"}, "update", began)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := s.ContinuesRecords(read(tc.after)); got != tc.want || err != nil {
				t.Errorf("%s: got %t, %v", tc.reason, got, err)
			}
		})
	}
}

// TestContinuesFromSubHandlers shows that the records of sub-handlers are compared as well.
func TestContinuesFromSubHandlers(t *testing.T) {
	state := restore(t, nil, []string{"fn"}, []string{"fn"}, "create")
	declare(t, state, "fn/sub", handlers.Policy{}, "fn")
	for id, want := range map[string]bool{"fn/sub": false, "fn/of-another": true} {
		got, err := state.ContinuesRecords(fetching(records{id: {Retries: ptr.To(int64(1))}}))
		if got != want || err != nil {
			t.Errorf("another process has called %s: got %v, error %v", id, got, err)
		}
	}
	broken := func(string) (*progress.Record, error) { return nil, errOrdinary }
	if got, err := state.ContinuesRecords(broken); got || !errors.Is(err, errOrdinary) {
		t.Errorf("want the error of an unreadable record, got %v, error %v", got, err)
	}
}

// TestContinuesFromWhatItWouldStore shows that a record that this process wanted to store is not a change: its write
// may have taken effect although the answer was lost.
func TestContinuesFromWhatItWouldStore(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	none := func(string) (*progress.Record, error) { return nil, nil }
	s, err := execution.RestoreState(none, []string{"a"}, []string{"a"}, "update", now)
	if err != nil {
		t.Fatal(err)
	}
	failed := execution.Outcome{Err: execution.ErrPaused, Delay: ptr.To(time.Minute)}
	if err := s.ConcludeAttempt("a", failed, now); err != nil {
		t.Fatal(err)
	}
	stored := s.StateOf("a").AsRecord()
	for want, found := range map[bool]*progress.Record{true: &stored, false: {Started: &now}} {
		got, err := s.ContinuesRecords(func(string) (*progress.Record, error) { return found, nil })
		if got != want || err != nil {
			t.Errorf("%v: got %t, %v", found, got, err)
		}
	}
}
