package peering_test

import (
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/kopf-runtime/kopf-runtime/peering"
)

// TestLock shows that a lock belongs to another operator until its gate opens, and again when the gate closes.
func TestLock(t *testing.T) {
	t.Parallel()
	lock, ctx := peering.NewLock("me", "default"), t.Context()
	mine := resourcelock.LeaderElectionRecord{HolderIdentity: "me"}
	taken := func(when string) {
		t.Helper()
		record, first, err := lock.Get(ctx)
		if err != nil || record.HolderIdentity == "" || record.HolderIdentity == "me" {
			t.Fatalf("%s: %v, %v", when, record, err)
		}
		if err := lock.Update(ctx, mine); err == nil || !strings.Contains(err.Error(), "another operator") {
			t.Errorf("%s: the lock is renewed: %v", when, err)
		}
		if record.LeaseDurationSeconds == 0 {
			t.Errorf("%s: an elector would retry at once: %s", when, first)
		}
	}
	taken("before the first decision")
	lock.Set(false)
	if _, _, err := lock.Get(ctx); !apierrors.IsNotFound(err) {
		t.Errorf("an open gate must free the lock, got %v", err)
	}
	if err := lock.Create(ctx, mine); err != nil {
		t.Error(err)
	}
	if record, _, err := lock.Get(ctx); err != nil || record.HolderIdentity != "me" {
		t.Errorf("the lock must be held by me: %v, %v", record, err)
	}
	lock.Set(true)
	taken("after a peer takes over")
	lock.Set(false)
	if _, _, err := lock.Get(ctx); !apierrors.IsNotFound(err) {
		t.Errorf("an open gate must free the lock again, got %v", err)
	}
	if lock.Identity() != "me" || lock.Describe() != "peering default" {
		t.Errorf("the lock has the identity %s and the description %s", lock.Identity(), lock.Describe())
	}
	lock.AllowWritesUntil(time.Now())
	lock.RecordEvent("nobody")
}

// TestCombinedGates shows that the state of a combined gate depends on its parts, but not on the order in which they
// are set.
func TestCombinedGates(t *testing.T) {
	t.Parallel()
	soon, late, never := testTime.Add(time.Minute), testTime.Add(time.Hour), time.Time{}
	type part struct {
		closed bool
		end    time.Time
	}
	tests := map[string]struct {
		combine func(peering.WriteGate) *peering.CombinedGate
		parts   []part
		want    part
	}{
		"AnyOfTwo":     {peering.ClosedByAny, []part{{true, late}, {false, soon}}, part{true, soon}},
		"AnyOpen":      {peering.ClosedByAny, []part{{false, late}, {false, never}}, part{false, late}},
		"AnyUnlimited": {peering.ClosedByAny, []part{{true, never}, {false, never}}, part{true, never}},
		"AllOfTwo":     {peering.ClosedByAll, []part{{true, late}, {false, soon}}, part{false, late}},
		"AllClosed":    {peering.ClosedByAll, []part{{true, soon}, {true, late}}, part{true, late}},
		"AllUnlimited": {peering.ClosedByAll, []part{{true, never}, {true, late}}, part{true, never}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, order := range [][]part{tc.parts, {tc.parts[1], tc.parts[0]}} {
				g := &limitedGate{}
				combined := tc.combine(g)
				var all []*peering.GatePart
				for _, p := range order {
					one := combined.AddPart()
					one.Set(p.closed)
					one.AllowWritesUntil(p.end)
					all = append(all, one)
				}
				if got := (part{g.closed.Load(), g.writableUntil}); got != tc.want {
					t.Errorf("%v: want %v, got %v", order, tc.want, got)
				}
				all[0].Remove()
				if got := (part{g.closed.Load(), g.writableUntil}); got != order[1] {
					t.Errorf("%v: the gate must follow the remaining part, got %v", order, got)
				}
				all[1].Remove()
				if got := (part{g.closed.Load(), g.writableUntil}); got != (part{}) {
					t.Errorf("%v: the gate must open without parts, got %v", order, got)
				}
			}
		})
	}
}

type limitedGate struct {
	gate

	writableUntil time.Time
}

func (e *limitedGate) AllowWritesUntil(end time.Time) { e.writableUntil = end }
