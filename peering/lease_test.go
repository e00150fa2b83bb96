package peering_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/kopf-runtime/kopf-runtime/peering"
)

// fixedLock is a lock whose writes are confirmed after some time, or fail.
type fixedLock struct {
	resourcelock.Interface

	lag     time.Duration
	failure error
}

func (l *fixedLock) Identity() string { return "me" }

func (l *fixedLock) Create(context.Context, resourcelock.LeaderElectionRecord) error {
	time.Sleep(l.lag)
	return l.failure
}

func (l *fixedLock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.Create(ctx, record)
}

// TestLeaseFollowsRenewals shows that the permission of the gate follows the confirmed renewals, counted from when
// they were sent.
func TestLeaseFollowsRenewals(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		lock, gate, lease := &fixedLock{lag: time.Second}, &fencedGate{}, &peering.Lease{}
		seen, began := lease.WrapLock(lock), time.Now()
		record := resourcelock.LeaderElectionRecord{HolderIdentity: "me", LeaseDurationSeconds: 16}
		wantEnd := func(reason string, want time.Duration) {
			t.Helper()
			if got := gate.writableUntil.Load().Sub(began); got != want {
				t.Errorf("%s: writes are allowed for %s, want %s", reason, got, want)
			}
		}
		lease.SetGate(gate)
		if !gate.writableUntil.Load().IsZero() {
			t.Error("a process that never led must not have a limit")
		}
		if err := seen.Create(t.Context(), record); err != nil {
			t.Fatal(err)
		}
		wantEnd("the lease counts from when it was sent", 14*time.Second)
		if err := seen.Update(t.Context(), record); err != nil {
			t.Fatal(err)
		}
		wantEnd("a renewal extends the lease", 15*time.Second)
		lock.failure = errors.New("the lease has another holder")
		if err := seen.Update(t.Context(), record); !errors.Is(err, lock.failure) {
			t.Errorf("the elector gets the error %v", err)
		}
		wantEnd("a refused renewal does not extend the lease", 15*time.Second)
		next := &fencedGate{}
		lease.SetGate(next)
		if got := next.writableUntil.Load().Sub(began); got != 15*time.Second {
			t.Errorf("another gate is allowed to write for %s", got)
		}
		gate, lock.failure = next, nil
		record.HolderIdentity = ""
		if err := seen.Update(t.Context(), record); err != nil {
			t.Fatal(err)
		}
		wantEnd("a released lease ends at once", 3*time.Second)
		lease.WatchForSuspensions(t.Context()) // which returns, as the renewals are seen
	})
}

// frozenGate is a gate that can suspend the process once.
type frozenGate struct {
	fencedGate

	freeze atomic.Int64 // a duration, applied once
}

func (g *frozenGate) AllowWritesUntil(end time.Time) {
	g.fencedGate.AllowWritesUntil(end)
	time.Sleep(time.Duration(g.freeze.Swap(0)))
}

func (g *frozenGate) mayWrite() bool { return time.Now().Before(*g.writableUntil.Load()) }

// TestLeaseOfProcessThatStoodStill shows that a process that was suspended for longer than the slack of its lease may
// not write until its elector has renewed the lease, or has ended the process. The test does not see renewals.
func TestLeaseOfProcessThatStoodStill(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		reason string
		freeze time.Duration
		closed time.Duration // from when the process wakes up
	}{
		"Short": {"a process that was suspended for less than the slack may write at once", 4 * time.Second, 0},
		"Long":  {"a process that was suspended for long may not write at once", 20 * time.Second, 15 * time.Second},
		"Slack": {"a process that was suspended for a little more than the slack may not write at once",
			6 * time.Second, 15 * time.Second},
		"Hourly": {"a process that was suspended for hours may write after the same time",
			3 * time.Hour, 15 * time.Second},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				gate, lease := &frozenGate{}, &peering.Lease{}
				lease.SetGate(gate)
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan struct{})
				go func() { defer close(done); lease.WatchForSuspensions(ctx) }()
				time.Sleep(10*time.Minute + time.Millisecond)
				if !gate.mayWrite() {
					t.Fatal("the process was not suspended and must be allowed to write")
				}
				gate.freeze.Store(int64(tc.freeze))
				time.Sleep(time.Second + tc.freeze - 2*time.Millisecond)
				if gate.mayWrite() != (tc.closed == 0) {
					t.Errorf("%s: when the process wakes up, it may write: %t", tc.reason, gate.mayWrite())
				}
				woke := time.Now()
				for !gate.mayWrite() && time.Since(woke) < time.Minute {
					time.Sleep(100 * time.Millisecond)
				}
				if closed := time.Since(woke).Round(time.Second); closed != tc.closed {
					t.Errorf("%s: the gate is closed for %s, want %s", tc.reason, closed, tc.closed)
				}
				cancel()
				<-done
				if !gate.writableUntil.Load().IsZero() {
					t.Error("the end of the handlers must remove the limit")
				}
			})
		})
	}
}
