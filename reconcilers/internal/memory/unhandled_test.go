package memory_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/changes"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/memory"
)

// TestUnhandled shows how unhandled changes are counted, and how their latency is measured.
func TestUnhandled(t *testing.T) {
	const a, b = types.UID("a"), types.UID("b")
	second := func() { time.Sleep(time.Second) }
	retry := func(in time.Duration) []changes.WaitingHandler {
		return []changes.WaitingHandler{{Handler: "fn", Until: time.Now().Add(in)}}
	}
	var never time.Time
	tests := map[string]struct {
		reason string
		run    func(u *memory.Unhandled) (took time.Duration)
		took   time.Duration
		late   memory.UnfinishedWork
	}{
		"Nothing": {reason: "without an event nothing is unhandled",
			run: func(*memory.Unhandled) time.Duration { return 0 }},
		"Queued": {
			reason: "an event without a pass counts as a change",
			run: func(u *memory.Unhandled) time.Duration {
				u.NoteEvent(a, time.Now())
				second()
				u.NoteEvent(b, time.Now())
				second()
				u.NoteEvent(a, time.Now())
				return 0
			},
			late: memory.UnfinishedWork{Changes: 2, OldestAge: 2 * time.Second},
		},
		"Handled": {
			reason: "the latency includes the time in the queue and of the pass",
			run: func(u *memory.Unhandled) time.Duration {
				u.NoteEvent(a, time.Now())
				second()
				u.BeginPass(a)
				second()
				return u.FinishChange(a)
			},
			took: 2 * time.Second,
		},
		"HandledAgain": {
			reason: "an event during a pass is unhandled from its own time on",
			run: func(u *memory.Unhandled) time.Duration {
				u.NoteEvent(a, time.Now())
				u.BeginPass(a)
				second()
				u.NoteEvent(a, time.Now())
				second()
				u.NoteEvent(a, time.Now())
				took := u.FinishChange(a)
				second()
				return took
			},
			took: 2 * time.Second, late: memory.UnfinishedWork{Changes: 1, OldestAge: 2 * time.Second},
		},
		"NewsOfAFormerPass": {
			reason: "an event before the begin of a pass is covered by that pass",
			run: func(u *memory.Unhandled) time.Duration {
				u.BeginPass(a)
				second()
				u.NoteEvent(a, time.Now())
				u.KeepOpen(a, never, nil)
				u.BeginPass(a)
				return u.FinishChange(a)
			},
			took: time.Second,
		},
		"WithoutAnEvent": {
			reason: "a pass without an event starts the time",
			run:    func(u *memory.Unhandled) time.Duration { u.BeginPass(a); second(); return u.FinishChange(a) },
			took:   time.Second,
		},
		"Left": {
			reason: "a pass that leaves a change unfinished keeps the start time",
			run: func(u *memory.Unhandled) time.Duration {
				u.NoteEvent(a, time.Now())
				second()
				u.BeginPass(a)
				u.KeepOpen(a, never, retry(time.Hour))
				second()
				return 0
			},
			late: memory.UnfinishedWork{Changes: 1, OldestAge: 2 * time.Second,
				WaitingByHandler: map[string]int{"fn": 1}},
		},
		"Older": {
			reason: "a start time from the record of a former process is used",
			run: func(u *memory.Unhandled) time.Duration {
				u.BeginPass(a)
				u.KeepOpen(a, time.Now().Add(-time.Minute), nil)
				u.BeginPass(a)
				return u.FinishChange(a)
			},
			took: time.Minute,
		},
		"Younger": {
			reason: "the time of the event is used if the handler started later",
			run: func(u *memory.Unhandled) time.Duration {
				u.NoteEvent(a, time.Now())
				second()
				u.BeginPass(a)
				u.KeepOpen(a, time.Now(), nil)
				return u.FinishChange(a)
			},
			took: time.Second,
		},
		"Future": {
			reason: "a start time in the future is ignored",
			run: func(u *memory.Unhandled) time.Duration {
				u.BeginPass(a)
				u.KeepOpen(a, time.Now().Add(time.Hour), nil)
				return u.FinishChange(a)
			},
		},
		"Retried": {
			reason: "a handler that is called is not counted as waiting",
			run: func(u *memory.Unhandled) time.Duration {
				u.BeginPass(a)
				u.KeepOpen(a, never, append(retry(time.Second), changes.WaitingHandler{
					Handler: "other", Until: time.Now().Add(time.Hour),
				}))
				second()
				u.BeginPass(a)
				return 0
			},
			late: memory.UnfinishedWork{Changes: 1, OldestAge: time.Second,
				WaitingByHandler: map[string]int{"other": 1}},
		},
		"DueAndQueued": {
			reason: "a handler that is due is counted as waiting until its pass begins",
			run: func(u *memory.Unhandled) time.Duration {
				for _, uid := range []types.UID{a, b} {
					u.BeginPass(uid)
					u.KeepOpen(uid, never, retry(time.Second))
				}
				time.Sleep(time.Minute)
				return 0
			},
			late: memory.UnfinishedWork{Changes: 2, OldestAge: time.Minute, WaitingByHandler: map[string]int{"fn": 2}},
		},
		"Gone": {
			reason: "a deleted object is not counted, even if its pass ends later",
			run: func(u *memory.Unhandled) time.Duration {
				u.NoteEvent(a, time.Now())
				u.BeginPass(a)
				second()
				u.ForgetObject(a)
				u.KeepOpen(a, never, nil)
				return u.FinishChange(a)
			},
		},
		"Cleared": {
			reason: "a cleared state counts nothing, as another replica handles the objects",
			run: func(u *memory.Unhandled) time.Duration {
				u.NoteEvent(a, time.Now())
				u.ForgetAll()
				return u.FinishChange(a)
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				u := &memory.Unhandled{}
				if took := tc.run(u); took != tc.took {
					t.Errorf("%s: took %s, want %s", tc.reason, took, tc.took)
				}
				if d := cmp.Diff(tc.late, u.CurrentUnfinished()); d != "" {
					t.Errorf("%s: -want, +got:\n%s", tc.reason, d)
				}
				if took := tc.run(nil); took != 0 {
					t.Errorf("a nil state took %s", took)
				}
			})
		})
	}
}

// TestUnhandledOfVeryMany shows that the counts are correct while many entries are removed one by one.
func TestUnhandledOfVeryMany(t *testing.T) {
	const many = 5000
	u := &memory.Unhandled{}
	for i := range many {
		u.NoteEvent(types.UID(fmt.Sprint(i)), time.Now())
	}
	for i := range many {
		u.FinishChange(types.UID(fmt.Sprint(i)))
		if late := u.CurrentUnfinished(); i%1000 == 0 && late.Changes != many-1-i {
			t.Fatalf("%d changes of %d remain after %d were handled", late.Changes, many, i+1)
		}
	}
	if late := u.CurrentUnfinished(); late.Changes != 0 {
		t.Errorf("%d changes remain", late.Changes)
	}
}

// TestUnhandledIsCheap shows that an event and its pass allocate nothing, with and without other objects.
func TestUnhandledIsCheap(t *testing.T) {
	u := &memory.Unhandled{}
	for _, others := range []types.UID{"", "b"} {
		if others != "" {
			u.NoteEvent(others, time.Now())
		}
		if n := testing.AllocsPerRun(100, func() {
			u.NoteEvent("a",
				time.Now())
			u.BeginPass("a")
			u.FinishChange("a")
		}); n != 0 {
			t.Errorf("with others %q: %v allocations", others, n)
		}
	}
}
