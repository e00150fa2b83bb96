package memory_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/changes"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/memory"
)

func TestUnhandled(t *testing.T) {
	const a, b = types.UID("a"), types.UID("b")
	second := func() { time.Sleep(time.Second) }
	retry := func(in time.Duration) []changes.Waiting {
		return []changes.Waiting{{Handler: "fn", Until: time.Now().Add(in)}}
	}
	var never time.Time
	tests := map[string]struct {
		reason string
		run    func(u *memory.Unhandled) (took time.Duration)
		took   time.Duration
		late   memory.Late
	}{
		"Nothing": {reason: "nobody has come", run: func(*memory.Unhandled) time.Duration { return 0 }},
		"Queued": {
			reason: "nobody has looked at it: it may be a change",
			run: func(u *memory.Unhandled) time.Duration {
				u.Seen(a, time.Now())
				second()
				u.Seen(b, time.Now())
				second()
				u.Seen(a, time.Now())
				return 0
			},
			late: memory.Late{Changes: 2, Oldest: 2 * time.Second},
		},
		"Handled": {
			reason: "the time in the queue counts, as that of the pass",
			run: func(u *memory.Unhandled) time.Duration {
				u.Seen(a, time.Now())
				second()
				u.Begin(a)
				second()
				return u.End(a)
			},
			took: 2 * time.Second,
		},
		"HandledAgain": {
			reason: "what has come during the pass is next, from when it has come first",
			run: func(u *memory.Unhandled) time.Duration {
				u.Seen(a, time.Now())
				u.Begin(a)
				second()
				u.Seen(a, time.Now())
				second()
				u.Seen(a, time.Now())
				took := u.End(a)
				second()
				return took
			},
			took: 2 * time.Second, late: memory.Late{Changes: 1, Oldest: 2 * time.Second},
		},
		"NewsOfAFormerPass": {
			reason: "a pass that begins sees all that has come before",
			run: func(u *memory.Unhandled) time.Duration {
				u.Begin(a)
				second()
				u.Seen(a, time.Now())
				u.Leave(a, never, nil)
				u.Begin(a)
				return u.End(a)
			},
			took: time.Second,
		},
		"WithoutAnEvent": {
			reason: "a pass that nobody has announced begins the time",
			run:    func(u *memory.Unhandled) time.Duration { u.Begin(a); second(); return u.End(a) },
			took:   time.Second,
		},
		"Left": {
			reason: "a pass that could not end it leaves the time as it is",
			run: func(u *memory.Unhandled) time.Duration {
				u.Seen(a, time.Now())
				second()
				u.Begin(a)
				u.Leave(a, never, retry(time.Hour))
				second()
				return 0
			},
			late: memory.Late{Changes: 1, Oldest: 2 * time.Second, Waiting: map[string]int{"fn": 1}},
		},
		"Older": {
			reason: "a record knows of a former process",
			run: func(u *memory.Unhandled) time.Duration {
				u.Begin(a)
				u.Leave(a, time.Now().Add(-time.Minute), nil)
				u.Begin(a)
				return u.End(a)
			},
			took: time.Minute,
		},
		"Younger": {
			reason: "the event was before the handler",
			run: func(u *memory.Unhandled) time.Duration {
				u.Seen(a, time.Now())
				second()
				u.Begin(a)
				u.Leave(a, time.Now(), nil)
				return u.End(a)
			},
			took: time.Second,
		},
		"Future": {
			reason: "clocks are corrected",
			run: func(u *memory.Unhandled) time.Duration {
				u.Begin(a)
				u.Leave(a, time.Now().Add(time.Hour), nil)
				return u.End(a)
			},
		},
		"Retried": {
			reason: "who is called does not wait, but the other one does",
			run: func(u *memory.Unhandled) time.Duration {
				u.Begin(a)
				u.Leave(a, never, append(retry(time.Second), changes.Waiting{
					Handler: "other", Until: time.Now().Add(time.Hour),
				}))
				second()
				u.Begin(a)
				return 0
			},
			late: memory.Late{Changes: 1, Oldest: time.Second, Waiting: map[string]int{"other": 1}},
		},
		"DueAndQueued": {
			reason: "who is due waits as long as no pass has begun, two objects for one handler",
			run: func(u *memory.Unhandled) time.Duration {
				for _, uid := range []types.UID{a, b} {
					u.Begin(uid)
					u.Leave(uid, never, retry(time.Second))
				}
				time.Sleep(time.Minute)
				return 0
			},
			late: memory.Late{Changes: 2, Oldest: time.Minute, Waiting: map[string]int{"fn": 2}},
		},
		"Gone": {
			reason: "nobody waits for what is gone, and a pass that ends then leaves nothing",
			run: func(u *memory.Unhandled) time.Duration {
				u.Seen(a, time.Now())
				u.Begin(a)
				second()
				u.Forget(a)
				u.Leave(a, never, nil)
				return u.End(a)
			},
		},
		"Cleared": {
			reason: "others handle the objects",
			run: func(u *memory.Unhandled) time.Duration {
				u.Seen(a, time.Now())
				u.Clear()
				return u.End(a)
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
				if d := cmp.Diff(tc.late, u.Late()); d != "" {
					t.Errorf("%s: -want, +got:\n%s", tc.reason, d)
				}
				if took := tc.run(nil); took != 0 {
					t.Errorf("nobody asks, and it took %s", took)
				}
			})
		})
	}
}

// What very many objects took at the start is not given back before the last of them is handled: the others still wait.
func TestUnhandledOfVeryMany(t *testing.T) {
	const many = 5000
	u := &memory.Unhandled{}
	for i := range many {
		u.Seen(types.UID(fmt.Sprint(i)), time.Now())
	}
	for i := range many {
		u.End(types.UID(fmt.Sprint(i)))
		if late := u.Late(); i%1000 == 0 && late.Changes != many-1-i {
			t.Fatalf("%d changes are left of %d, of which %d are handled", late.Changes, many, i+1)
		}
	}
	if late := u.Late(); late.Changes != 0 {
		t.Errorf("%d changes are left", late.Changes)
	}
}

// An event and its pass allocate nothing, be it the only one or not.
func TestUnhandledIsCheap(t *testing.T) {
	u := &memory.Unhandled{}
	for _, others := range []types.UID{"", "b"} {
		if others != "" {
			u.Seen(others, time.Now())
		}
		if n := testing.AllocsPerRun(100, func() { u.Seen("a", time.Now()); u.Begin("a"); u.End("a") }); n != 0 {
			t.Errorf("with others %q: %v allocations", others, n)
		}
	}
}
