package peering_test

import (
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/kopf-runtime/kopf-runtime/peering"
)

// A lock is somebody else's until its gate is open, and again when it is closed.
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
			t.Errorf("%s: it is renewed: %v", when, err)
		}
		if record.LeaseDurationSeconds == 0 {
			t.Errorf("%s: an elector would try at once: %s", when, first)
		}
	}
	taken("nothing is known yet")
	lock.Set(false)
	if _, _, err := lock.Get(ctx); !apierrors.IsNotFound(err) {
		t.Errorf("it is free, and is read with %v", err)
	}
	if err := lock.Create(ctx, mine); err != nil {
		t.Error(err)
	}
	if record, _, err := lock.Get(ctx); err != nil || record.HolderIdentity != "me" {
		t.Errorf("it is held: %v, %v", record, err)
	}
	lock.Set(true)
	taken("a peer takes over")
	lock.Set(false)
	if _, _, err := lock.Get(ctx); !apierrors.IsNotFound(err) {
		t.Errorf("it is free again, and is read with %v", err)
	}
	if lock.Identity() != "me" || lock.Describe() != "peering default" {
		t.Errorf("it is of %s, %s", lock.Identity(), lock.Describe())
	}
	lock.AllowWritesUntil(time.Now())
	lock.RecordEvent("nobody")
}

// A gate is open while all of its seats are, and the first end of a seat is that of all.
func TestSeats(t *testing.T) {
	t.Parallel()
	g := &ended{}
	seats := peering.NewSeats(g)
	a, b := seats.Take(), seats.Take()
	soon, late := now.Add(time.Minute), now.Add(time.Hour)
	a.Set(true)
	b.Set(false)
	a.AllowWritesUntil(late)
	b.AllowWritesUntil(soon)
	if !g.closed.Load() || !g.end.Equal(soon) {
		t.Errorf("one of two is closed, and one ends soon: %t, %s", g.closed.Load(), g.end)
	}
	b.Leave()
	a.Set(false)
	if g.closed.Load() || !g.end.Equal(late) {
		t.Errorf("the other one is left: %t, %s", g.closed.Load(), g.end)
	}
	a.AllowWritesUntil(time.Time{})
	if !g.end.IsZero() {
		t.Errorf("nothing ends: %s", g.end)
	}
}

type ended struct {
	gate

	end time.Time
}

func (e *ended) AllowWritesUntil(end time.Time) { e.end = end }
