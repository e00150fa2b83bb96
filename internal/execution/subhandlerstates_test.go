package execution_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	"github.com/kopf-runtime/kopf-runtime/internal/execution"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

// declare declares a sub-handler of its ancestors, the nearest one last.
func declare(
	t *testing.T, s *execution.State, id string, policy handlers.Policy, ancestors ...string,
) *execution.HandlerState {
	t.Helper()
	e, err := s.RestoreSub(&handlers.Handler{ID: id, Policy: policy}, ancestors, epoch)
	if err != nil {
		t.Fatalf("declaring: %v", err)
	}
	return e
}

// TestSubHandlersWithRecords shows which sub-handlers get a record: in the compact form only those with progress to
// store, since hundreds of records would not fit.
func TestSubHandlersWithRecords(t *testing.T) {
	retried := execution.Outcome{Err: errOrdinary, Delay: ptr.To(time.Second)}
	for name, tc := range map[string]struct {
		reason  string
		policy  handlers.Policy
		held    records
		happen  func(t *testing.T, s *execution.State, e *execution.HandlerState)
		compact bool // whether it has a record in this form
		full    bool // whether it has one in that of Kopf
	}{
		"New": {"a postponed sub-handler has no record", handlers.Policy{}, nil, nil, false, false},
		"Placed": {
			"a sub-handler that was not called yet has a record only in the full form", handlers.Policy{}, nil,
			func(_ *testing.T, _ *execution.State, e *execution.HandlerState) { e.Postponed = false }, false, true,
		},
		"Waiting": {
			"a sub-handler that waits for its dependencies has no record", handlers.Policy{}, nil,
			func(_ *testing.T, _ *execution.State, e *execution.HandlerState) {
				e.Postponed, e.Waiting = false, true
			},
			false, false,
		},
		"Timed": {
			"a sub-handler with a timeout has a record of its start", handlers.Policy{Timeout: ptr.To(time.Hour)}, nil,
			func(_ *testing.T, _ *execution.State, e *execution.HandlerState) { e.Postponed = false }, true, true,
		},
		"Parent": {
			"a sub-handler with sub-handlers of its own has a record", handlers.Policy{}, nil,
			func(t *testing.T, s *execution.State, e *execution.HandlerState) {
				e.Postponed = false
				declare(t, s, "fn/sub/part", handlers.Policy{}, "fn", "fn/sub")
			}, true, true,
		},
		"Retried": {
			"a retried sub-handler has a record of its attempts", handlers.Policy{}, nil,
			func(t *testing.T, s *execution.State, e *execution.HandlerState) {
				conclude(t, s, e.ID, retried, epoch)
			},
			true, true,
		},
		"Held": {"a stored record is kept",
			handlers.Policy{}, records{"fn/sub": {Retries: ptr.To(int64(0))}}, nil, true, true},
		"HeldWaiting": {
			"a stored record is kept while its sub-handler waits again",
			handlers.Policy{}, records{"fn/sub": {Retries: ptr.To(int64(0))}},
			func(_ *testing.T, _ *execution.State, e *execution.HandlerState) { e.Waiting = true }, true, true,
		},
		"Succeeded": {
			"a success in the compact form is a name in the record of the parent", handlers.Policy{}, nil,
			func(t *testing.T, s *execution.State, e *execution.HandlerState) {
				conclude(t, s, e.ID, execution.Outcome{Final: true}, epoch)
			}, false, true,
		},
		"HeldSuccess": {
			"a stored success becomes a name in the compact form",
			handlers.Policy{}, records{"fn/sub": {Success: ptr.To(true)}}, nil,
			false,
			true,
		},
		"Failed": {
			"a failed sub-handler has a record of its error", handlers.Policy{}, nil,
			func(t *testing.T, s *execution.State, e *execution.HandlerState) {
				conclude(t, s, e.ID, execution.Outcome{Final: true, Err: errOrdinary}, epoch)
			}, true, true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, compact := range []bool{true, false} {
				want := map[bool]bool{true: tc.compact, false: tc.full}[compact]
				state := restore(t, tc.held, []string{"fn"}, []string{"fn"}, "create")
				state.Compact = compact
				e := declare(t, state, "fn/sub", tc.policy, "fn")
				if again := declare(t, state, "fn/sub", tc.policy, "fn"); again != e || !e.IsSub() {
					t.Error("a second declaration returned another sub-handler")
				}
				if tc.happen != nil {
					tc.happen(t, state, e)
				}
				if got := e.NeedsRecord(); got != want {
					t.Errorf("%s: compact %v: has a record: %v, want %v", tc.reason, compact, got, want)
				}
				refs, to := state.ActiveRecords()["fn"].Subrefs, &recordingStorage{}
				if err := state.StoreChanged(to, nil, nil); err != nil {
					t.Fatal(err)
				}
				stored := strings.Join(append(to.stored, ""), " ")
				if held := strings.Contains(strings.Join(append(refs, ""), " "), "fn/sub "); held != want {
					t.Errorf("%s: compact %v: the parent refers to %v", tc.reason, compact, refs)
				}
				if wrote := strings.Contains(stored, "fn/sub "); wrote && !want {
					t.Errorf("%s: compact %v: stored %v", tc.reason, compact, to.stored)
				}
				if gone := cmp.Equal([]string{"fn/sub"}, to.purged); gone != (tc.held != nil && !want) {
					t.Errorf("%s: compact %v: purged %v", tc.reason, compact, to.purged)
				}
				state.MarkWritten()
				again := &recordingStorage{}
				if state.StoreChanged(again, nil, nil) != nil || again.stored != nil || again.purged != nil {
					t.Errorf("written records are stored again: %+v", again)
				}
				if e.IsStored() != want {
					t.Errorf("%s: compact %v: stored: %v", tc.reason, compact, e.IsStored())
				}
			}
		})
	}
}

// TestSucceededSubHandlersAreNamed shows that the record of the parent names successful sub-handlers while the names
// are needed.
func TestSucceededSubHandlersAreNamed(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		parent *execution.Outcome
		want   []string
	}{
		"Running":   {"a running parent names all successes", nil, []string{"a", "b"}},
		"Succeeded": {"a successful parent names no successes", &execution.Outcome{Final: true}, nil},
		"Failed": {"a failed parent names one success, to show that there are some",
			&execution.Outcome{Final: true, Err: errOrdinary}, []string{"a"}},
	} {
		state := restore(t, nil, []string{"fn"}, []string{"fn"}, "create")
		state.Compact = true
		for _, id := range []string{"fn/b", "fn/a", "fn/c"} {
			declare(t, state, id, handlers.Policy{}, "fn")
		}
		for _, id := range []string{"fn/b", "fn/a"} {
			conclude(t, state, id, execution.Outcome{Final: true}, epoch)
		}
		if tc.parent != nil {
			conclude(t, state, "fn", *tc.parent, epoch)
		}
		record := state.ActiveRecords()["fn"]
		if d := cmp.Diff(tc.want, record.Succeeded); d != "" {
			t.Errorf("%s: %s: -want, +got:\n%s", name, tc.reason, d)
		}
		if tc.parent != nil {
			continue
		}
		next := restore(t, records{"fn": record}, []string{"fn"}, []string{"fn"}, "create")
		next.Compact = true
		if e := declare(t, next, "fn/a", handlers.Policy{}, "fn"); !e.Success || e.Postponed || !e.HasProgress() {
			t.Errorf("want the success known to a later process, got %+v", e)
		}
		known, err := next.KnownSub("fn/b", nil, "fn", epoch)
		if err != nil || !known.Success {
			t.Errorf("want the success known without a declaration, got %+v, error %v", known, err)
		}
		fresh := declare(t, next, "fn/c", handlers.Policy{}, "fn")
		if fresh.Success || !fresh.Postponed || fresh.HasProgress() {
			t.Errorf("want a sub-handler without a success to be new, got %+v", fresh)
		}
		if again, err := next.KnownSub("fn/c", nil, "fn", epoch); err != nil || again.Success {
			t.Errorf("want a declared sub-handler without a success, got %+v, error %v", again, err)
		}
		if d := cmp.Diff([]string{"a", "b"}, next.ActiveRecords()["fn"].Succeeded); d != "" {
			t.Errorf("want the names kept: -want, +got:\n%s", d)
		}
	}
}

func TestSubHandlersThatCannotBeRead(t *testing.T) {
	state, err := execution.RestoreState(func(id string) (*progress.Record, error) {
		if id == "fn" {
			return nil, nil
		}
		return nil, errOrdinary
	}, []string{"fn"}, []string{"fn"}, "create", epoch)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := state.RestoreSub(&handlers.Handler{ID: "fn/a"}, []string{"fn"}, epoch); !errors.Is(err, errOrdinary) ||
		!strings.Contains(err.Error(), `"fn/a"`) {
		t.Errorf("want an error that names the sub-handler, got %v", err)
	}
}

// TestTried shows that a handler with a stored record or an attempt has progress.
func TestTried(t *testing.T) {
	held := records{"a": {Retries: ptr.To(int64(0))}, "b": {Retries: ptr.To(int64(1))}}
	state := restore(t, held, []string{"a", "b", "c", "d"}, []string{"a", "b", "c", "d"}, "create")
	wait := execution.PendingError{Delay: time.Hour, Wait: progress.Wait{Child: "ConfigMap a", Until: at(60)}}
	conclude(t, state, "d", execution.Limits{}.PendingOutcome(&wait), epoch)
	for id, want := range map[string]bool{"a": true, "b": true, "c": false, "d": true} {
		if got := state.StateOf(id).HasProgress(); got != want {
			t.Errorf("handler %s: got %v", id, got)
		}
	}
}

func TestReleaseBeginsTheTime(t *testing.T) {
	for name, tc := range map[string]struct {
		reason  string
		retries int
		waiting bool
		moves   bool
	}{
		"Fresh":    {"the time of a new handler begins when its wait ends", 0, true, true},
		"Tried":    {"the time of a handler with attempts is not changed", 1, true, false},
		"NotAtAll": {"the time of a handler that has not waited is not changed", 0, false, false},
	} {
		e := &execution.HandlerState{Waiting: tc.waiting, Started: epoch, Retries: tc.retries}
		e.EndWaiting(at(5))
		if e.Waiting || e.Started.Equal(at(5)) != tc.moves {
			t.Errorf("%s: %s: %+v", name, tc.reason, e)
		}
	}
}

// TestMessagesOfSubHandlersAreShort shows that the record of a sub-handler keeps the beginning of its error, and that
// of a handler most of it.
func TestMessagesOfSubHandlersAreShort(t *testing.T) {
	long := execution.Outcome{Err: errors.New(strings.Repeat("x", 5000)), Delay: ptr.To(time.Second)}
	size := func(e *execution.HandlerState) int {
		if e.Message == nil {
			return 0
		}
		return len(*e.Message) - len("…")
	}
	state := restore(t, nil, []string{"fn"}, []string{"fn"}, "create")
	sub := declare(t, state, "fn/sub", handlers.Policy{}, "fn")
	conclude(t, state, "fn/sub", long, epoch)
	if size(sub) != 256 || size(sub) >= len(*state.ActiveRecords()["fn/sub"].Message) {
		t.Errorf("got %d bytes, want 256 before the ellipsis", size(sub))
	}
	reserved := sub.LargestRecord(epoch)
	if len(*reserved.Message) != 256+len(`\u2026`) || reserved.Delayed == nil {
		t.Errorf("want room reserved for the longest message, got %d bytes", len(*reserved.Message))
	}
	terse := declare(t, state, "fn/terse", handlers.Policy{}, "fn")
	terse.IsMessageCapped = true
	conclude(t, state, "fn/terse", long, epoch)
	if size(terse) != 0 {
		t.Errorf("want no message without room, got %d bytes", size(terse))
	}
	terse.Message = ptr.To("four")
	conclude(t, state, "fn/terse", long, epoch)
	if text := *terse.Message; text != "…" && len(text) > len("four") {
		t.Errorf("want a message no longer than the former one, got %q", text)
	}
	terse.Message = ptr.To(strings.Repeat("y", 100))
	conclude(t, state, "fn/terse", long, epoch)
	if size(terse) != 100-len(`\u2026`) {
		t.Errorf("want the ellipsis within the 100 bytes of the former message, got %d", size(terse))
	}
}

func TestNaming(t *testing.T) {
	state := restore(t, nil, []string{"fn"}, []string{"fn"}, "create")
	declare(t, state, "fn/sub", handlers.Policy{}, "fn")
	part := declare(t, state, "fn/sub/part", handlers.Policy{}, "fn", "fn/sub")
	bytes, levels, each := part.ReferenceSizes()
	if d := cmp.Diff([]int{len(`"part",`), 2, len(`"fn/sub/part",`)}, []int{bytes, levels, each}); d != "" {
		t.Errorf("bytes of its name, records that refer to it, bytes in each: -want, +got:\n%s", d)
	}
}

// panicking is a storage whose Purge method panics.
type panicking struct{ recordingStorage }

func (p *panicking) Purge(_, _ map[string]any, id string) {
	p.purged = append(p.purged, id)
	panic(id)
}

func TestPurgeGoesOn(t *testing.T) {
	state := restore(t, records{"b": {}}, []string{"a", "b"}, []string{"a"}, "create")
	to := &panicking{}
	if err := state.PurgeAll(to, nil, nil); err == nil || !strings.Contains(err.Error(), `"a"`) || len(to.purged) != 2 {
		t.Errorf("want the first error after trying all records, got %v, %v", err, to.purged)
	}
}

// TestSubrefsOfFormerCalls shows that the record of a handler refers to sub-handlers of former calls, so that their
// records are removed with it.
func TestSubrefsOfFormerCalls(t *testing.T) {
	held := records{
		"fn": {Subrefs: []string{"fn/former", "fn/present"}}, "fn/present": {Retries: ptr.To(int64(1))},
	}
	state := restore(t, held, []string{"fn"}, []string{"fn"}, "create")
	for _, id := range []string{"fn/present", "fn/new"} {
		declare(t, state, id, handlers.Policy{}, "fn")
	}
	if d := cmp.Diff([]string{"fn/former", "fn/present"}, state.ActiveRecords()["fn"].Subrefs); d != "" {
		t.Errorf("want no reference to a sub-handler without a record: -want, +got:\n%s", d)
	}
}

func TestSubrefsAreNamedOnce(t *testing.T) {
	state := restore(t, records{"fn": {Subrefs: []string{"fn/b", "fn/a"}}}, []string{"fn"}, []string{"fn"}, "create")
	conclude(t, state, "fn", execution.Outcome{Subrefs: []string{"fn/b"}}, epoch)
	if d := cmp.Diff([]string{"fn/a", "fn/b"}, state.ActiveRecords()["fn"].Subrefs); d != "" {
		t.Errorf("-want, +got:\n%s", d)
	}
	conclude(t, state, "fn", execution.Outcome{Subrefs: []string{"fn/b"}}, epoch)
	if d := cmp.Diff([]string{"fn/a", "fn/b"}, state.ActiveRecords()["fn"].Subrefs); d != "" {
		t.Errorf("listed again: -want, +got:\n%s", d)
	}
}
