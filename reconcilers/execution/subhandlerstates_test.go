package execution_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

// declare is a sub-handler of its ancestors, the nearest one last.
func declare(
	t *testing.T, s *execution.State, id string, policy handlers.Policy, ancestors ...string,
) *execution.HandlerState {
	t.Helper()
	e, err := s.Sub(&handlers.Handler{ID: id, Policy: policy}, ancestors, epoch)
	if err != nil {
		t.Fatalf("declaring: %v", err)
	}
	return e
}

// Hundreds of sub-handlers would need hundreds of records: only those get one of which there is something to say.
func TestSubHandlersWithRecords(t *testing.T) {
	retried := execution.Outcome{Err: errBoo, Delay: ptr.To(time.Second)}
	for name, tc := range map[string]struct {
		reason  string
		policy  handlers.Policy
		held    records
		happen  func(t *testing.T, s *execution.State, e *execution.HandlerState)
		compact bool // whether it has a record in this form
		full    bool // whether it has one in that of Kopf
	}{
		"New": {"there is no room for it yet", handlers.Policy{}, nil, nil, false, false},
		"Placed": {
			"it was not called yet", handlers.Policy{}, nil,
			func(_ *testing.T, _ *execution.State, e *execution.HandlerState) { e.Postponed = false }, false, true,
		},
		"Waiting": {
			"it comes after others", handlers.Policy{}, nil,
			func(_ *testing.T, _ *execution.State, e *execution.HandlerState) {
				e.Postponed, e.Waiting = false, true
			},
			false, false,
		},
		"Timed": {
			"its time runs", handlers.Policy{Timeout: ptr.To(time.Hour)}, nil,
			func(_ *testing.T, _ *execution.State, e *execution.HandlerState) { e.Postponed = false }, true, true,
		},
		"Parent": {
			"it has some of its own", handlers.Policy{}, nil,
			func(t *testing.T, s *execution.State, e *execution.HandlerState) {
				e.Postponed = false
				declare(t, s, "fn/sub/part", handlers.Policy{}, "fn", "fn/sub")
			}, true, true,
		},
		"Retried": {
			"its attempts count", handlers.Policy{}, nil,
			func(t *testing.T, s *execution.State, e *execution.HandlerState) {
				conclude(t, s, e.ID, retried, epoch)
			},
			true, true,
		},
		"Held": {"it has one", handlers.Policy{}, records{"fn/sub": {Retries: ptr.To(int64(0))}}, nil, true, true},
		"HeldWaiting": {
			"even if it waits again", handlers.Policy{}, records{"fn/sub": {Retries: ptr.To(int64(0))}},
			func(_ *testing.T, _ *execution.State, e *execution.HandlerState) { e.Waiting = true }, true, true,
		},
		"Succeeded": {
			"its parent names it", handlers.Policy{}, nil,
			func(t *testing.T, s *execution.State, e *execution.HandlerState) {
				conclude(t, s, e.ID, execution.Outcome{Final: true}, epoch)
			}, false, true,
		},
		"HeldSuccess": {
			"so it is if another form was used", handlers.Policy{}, records{"fn/sub": {Success: ptr.To(true)}}, nil,
			false,
			true,
		},
		"Failed": {
			"the error is in it", handlers.Policy{}, nil,
			func(t *testing.T, s *execution.State, e *execution.HandlerState) {
				conclude(t, s, e.ID, execution.Outcome{Final: true, Err: errBoo}, epoch)
			}, true, true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, compact := range []bool{true, false} {
				want := map[bool]bool{true: tc.compact, false: tc.full}[compact]
				state := restore(t, tc.held, []string{"fn"}, []string{"fn"}, "create")
				state.Compact = compact
				e := declare(t, state, "fn/sub", tc.policy, "fn")
				if again := declare(t, state, "fn/sub", tc.policy, "fn"); again != e || !e.Sub() {
					t.Error("one that is declared twice is one")
				}
				if tc.happen != nil {
					tc.happen(t, state, e)
				}
				if got := e.Recorded(); got != want {
					t.Errorf("%s: compact %v: a record: %v, want %v", tc.reason, compact, got, want)
				}
				refs, to := state.Records()["fn"].Subrefs, &ledger{}
				if err := state.Store(to, nil, nil); err != nil {
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
				state.Written()
				again := &ledger{}
				if state.Store(again, nil, nil) != nil || again.stored != nil || again.purged != nil {
					t.Errorf("what is written is not written again: %+v", again)
				}
				if e.Stored() != want {
					t.Errorf("%s: compact %v: stored: %v", tc.reason, compact, e.Stored())
				}
			}
		})
	}
}

// The record of the parent names those that succeeded, as long as that says anything.
func TestSucceededSubHandlersAreNamed(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		parent *execution.Outcome
		want   []string
	}{
		"Running":   {"they are not called again", nil, []string{"a", "b"}},
		"Succeeded": {"nobody asks any more", &execution.Outcome{Final: true}, nil},
		"Failed":    {"one tells that there are some", &execution.Outcome{Final: true, Err: errBoo}, []string{"a"}},
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
		record := state.Records()["fn"]
		if d := cmp.Diff(tc.want, record.Succeeded); d != "" {
			t.Errorf("%s: %s: -want, +got:\n%s", name, tc.reason, d)
		}
		if tc.parent != nil {
			continue
		}
		next := restore(t, records{"fn": record}, []string{"fn"}, []string{"fn"}, "create")
		next.Compact = true
		if e := declare(t, next, "fn/a", handlers.Policy{}, "fn"); !e.Success || e.Postponed || !e.Tried() {
			t.Errorf("a later process knows of it: %+v", e)
		}
		known, err := next.Known("fn/b", nil, "fn", epoch)
		if err != nil || !known.Success {
			t.Errorf("so it does if it is not declared: %+v, error %v", known, err)
		}
		fresh := declare(t, next, "fn/c", handlers.Policy{}, "fn")
		if fresh.Success || !fresh.Postponed || fresh.Tried() {
			t.Errorf("others are as new as before: %+v", fresh)
		}
		if again, err := next.Known("fn/c", nil, "fn", epoch); err != nil || again.Success {
			t.Errorf("what is declared is known as such: %+v, error %v", again, err)
		}
		if d := cmp.Diff([]string{"a", "b"}, next.Records()["fn"].Succeeded); d != "" {
			t.Errorf("the names stay: -want, +got:\n%s", d)
		}
	}
}

func TestSubHandlersThatCannotBeRead(t *testing.T) {
	state, err := execution.Restore(func(id string) (*progress.Record, error) {
		if id == "fn" {
			return nil, nil
		}
		return nil, errBoo
	}, []string{"fn"}, []string{"fn"}, "create", epoch)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := state.Sub(&handlers.Handler{ID: "fn/a"}, []string{"fn"}, epoch); !errors.Is(err, errBoo) ||
		!strings.Contains(err.Error(), `"fn/a"`) {
		t.Errorf("it is named: got %v", err)
	}
}

// A handler that was called, or of which the object knows, has its place.
func TestTried(t *testing.T) {
	held := records{"a": {Retries: ptr.To(int64(0))}, "b": {Retries: ptr.To(int64(1))}}
	state := restore(t, held, []string{"a", "b", "c", "d"}, []string{"a", "b", "c", "d"}, "create")
	wait := execution.PendingError{Delay: time.Hour, Awaited: progress.Wait{Child: "ConfigMap a", Until: at(60)}}
	conclude(t, state, "d", execution.Limits{}.Await(&wait), epoch)
	for id, want := range map[string]bool{"a": true, "b": true, "c": false, "d": true} {
		if got := state.Handler(id).Tried(); got != want {
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
		"Fresh":    {"it has waited, and its time begins", 0, true, true},
		"Tried":    {"its time has begun already", 1, true, false},
		"NotAtAll": {"it has not waited", 0, false, false},
	} {
		e := &execution.HandlerState{Waiting: tc.waiting, Started: epoch, Retries: tc.retries}
		e.Release(at(5))
		if e.Waiting || e.Started.Equal(at(5)) != tc.moves {
			t.Errorf("%s: %s: %+v", name, tc.reason, e)
		}
	}
}

// The record of a sub-handler has room for the beginning of its error, that of a handler for most of it.
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
	if size(sub) != 256 || size(sub) >= len(*state.Records()["fn/sub"].Message) {
		t.Errorf("got %d bytes, want 256 before the ellipsis", size(sub))
	}
	reserved := sub.Reserved(epoch)
	if len(*reserved.Message) != 256+len(`\u2026`) || reserved.Delayed == nil {
		t.Errorf("the longest that an attempt can add is reserved: %d bytes", len(*reserved.Message))
	}
	terse := declare(t, state, "fn/terse", handlers.Policy{}, "fn")
	terse.Terse = true
	conclude(t, state, "fn/terse", long, epoch)
	if size(terse) != 0 {
		t.Errorf("there is no room for %d bytes", size(terse))
	}
	terse.Message = ptr.To("four")
	conclude(t, state, "fn/terse", long, epoch)
	if text := *terse.Message; text != "…" && len(text) > len("four") {
		t.Errorf("there is as much room as for the former one: %q", text)
	}
	terse.Message = ptr.To(strings.Repeat("y", 100))
	conclude(t, state, "fn/terse", long, epoch)
	if size(terse) != 100-len(`\u2026`) {
		t.Errorf("the ellipsis takes its part of 100 bytes: got %d", size(terse))
	}
}

func TestNaming(t *testing.T) {
	state := restore(t, nil, []string{"fn"}, []string{"fn"}, "create")
	declare(t, state, "fn/sub", handlers.Policy{}, "fn")
	part := declare(t, state, "fn/sub/part", handlers.Policy{}, "fn", "fn/sub")
	bytes, levels, each := part.Naming()
	if d := cmp.Diff([]int{len(`"part",`), 2, len(`"fn/sub/part",`)}, []int{bytes, levels, each}); d != "" {
		t.Errorf("bytes of its name, records that refer to it, bytes in each: -want, +got:\n%s", d)
	}
}

// panicking is a storage that cannot remove anything.
type panicking struct{ ledger }

func (p *panicking) Purge(_, _ map[string]any, id string) {
	p.purged = append(p.purged, id)
	panic(id)
}

func TestPurgeGoesOn(t *testing.T) {
	state := restore(t, records{"b": {}}, []string{"a", "b"}, []string{"a"}, "create")
	to := &panicking{}
	if err := state.Purge(to, nil, nil); err == nil || !strings.Contains(err.Error(), `"a"`) || len(to.purged) != 2 {
		t.Errorf("the first error counts, and all are tried: %v, %v", err, to.purged)
	}
}

// The record of a handler refers to sub-handlers of former calls as well: their records are purged with its own.
func TestSubrefsOfFormerCalls(t *testing.T) {
	held := records{
		"fn": {Subrefs: []string{"fn/former", "fn/present"}}, "fn/present": {Retries: ptr.To(int64(1))},
	}
	state := restore(t, held, []string{"fn"}, []string{"fn"}, "create")
	for _, id := range []string{"fn/present", "fn/new"} {
		declare(t, state, id, handlers.Policy{}, "fn")
	}
	if d := cmp.Diff([]string{"fn/former", "fn/present"}, state.Records()["fn"].Subrefs); d != "" {
		t.Errorf("the new one has no record yet: -want, +got:\n%s", d)
	}
}

func TestSubrefsAreNamedOnce(t *testing.T) {
	state := restore(t, records{"fn": {Subrefs: []string{"fn/b", "fn/a"}}}, []string{"fn"}, []string{"fn"}, "create")
	conclude(t, state, "fn", execution.Outcome{Subrefs: []string{"fn/b"}}, epoch)
	if d := cmp.Diff([]string{"fn/a", "fn/b"}, state.Records()["fn"].Subrefs); d != "" {
		t.Errorf("-want, +got:\n%s", d)
	}
	conclude(t, state, "fn", execution.Outcome{Subrefs: []string{"fn/b"}}, epoch)
	if d := cmp.Diff([]string{"fn/a", "fn/b"}, state.Records()["fn"].Subrefs); d != "" {
		t.Errorf("the last one again: -want, +got:\n%s", d)
	}
}
