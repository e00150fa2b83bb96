package peering

import (
	"context"
	"sync"
	"time"

	"k8s.io/client-go/tools/leaderelection/resourcelock"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/internal/logging"
)

// The intervals are derived from the defaults of controller-runtime, because a manager does not expose its configured
// ones.
const (
	// leaseMargin is the default of LeaseDuration minus that of RenewDeadline. A process that is suspended for longer
	// than this can lose its lease before its elector notices.
	leaseMargin = 5 * time.Second
	// suspensionCheckInterval is how often a process checks whether it was suspended.
	suspensionCheckInterval = time.Second
	// leaseDuration is the default of LeaseDuration. An elector that has run for this long after a suspension has
	// either renewed the lease or ended the process.
	leaseDuration = 15 * time.Second
)

// Lease closes a write gate when the process may have lost the leader election lease of its manager without noticing,
// such as after a suspension: an elector may need up to its RenewDeadline to notice that another process leads.
//
// With [Lease.WrapLock], the gate follows the renewals of the lease. Otherwise, [Lease.WatchForSuspensions] assumes the
// default timing of a manager: after a suspension that is longer than slack, it keeps the gate closed until the elector
// has had time to decide.
type Lease struct {
	mu            sync.Mutex
	lock          resourcelock.Interface // nil unless a lock is wrapped
	gate          WriteGate              // nil before it is set
	writableUntil time.Time              // end of the permission to write; zero has no limit
}

// RenewalEnd returns when the permission to write ends that a confirmed renewal gives: after seven eighths of the lease
// duration, counted from when the renewal was sent. The last eighth is left for requests that are still in flight.
func RenewalEnd(sent time.Time, duration time.Duration) time.Time {
	return sent.Add(duration - duration/8)
}

// WrapLock returns a lock that reports its renewals: the gate allows writes until their [RenewalEnd].
func (l *Lease) WrapLock(lock resourcelock.Interface) resourcelock.Interface {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lock = lock
	return observedLock{Interface: lock, lease: l}
}

// SetGate sets the gate that follows the lease. It replaces the previous gate.
func (l *Lease) SetGate(gate WriteGate) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.gate = gate
	gate.AllowWritesUntil(l.writableUntil)
}

// allowWritesUntil sets the time when the permission to write ends.
func (l *Lease) allowWritesUntil(until time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.writableUntil = until; l.gate != nil {
		l.gate.AllowWritesUntil(until)
	}
}

// WatchForSuspensions detects suspensions of the process until the context ends. It returns at once if the lease wraps
// a lock.
func (l *Lease) WatchForSuspensions(ctx context.Context) {
	l.mu.Lock()
	seen := l.lock != nil
	l.mu.Unlock()
	if seen {
		return
	}
	ticker := time.NewTicker(suspensionCheckInterval)
	defer ticker.Stop()
	last, reopen := time.Now(), time.Time{}
	for ctx.Err() == nil {
		// Each iteration extends the permission to write by the slack only. A suspended process does not extend it.
		now := time.Now()
		// After a suspension, the elector may still believe that it leads. It needs up to a full lease duration to
		// renew the lease or to end the process.
		if stood := elapsedBetween(last, now); stood > leaseMargin {
			logging.Warn(logf.FromContext(ctx), "Pausing operations, as the process stood still for longer than its "+
				"lease allows, and another process may lead", "stood", stood.String(), "for", leaseDuration.String())
			reopen = now.Add(leaseDuration)
		}
		// The permission is not extended before reopen.
		if last = now; !now.Before(reopen) {
			l.allowWritesUntil(now.Add(leaseMargin))
		}
		select {
		case <-ctx.Done():
		case <-ticker.C:
		}
	}
	// Remove the limit: nothing extends the permission any more, and the last writes of the process must not be
	// refused.
	l.allowWritesUntil(time.Time{})
}

// elapsedBetween returns the time between two readings of the clock. It takes the larger of the two clocks: the
// monotonic clock can stop while the machine is suspended, but the wall clock continues. Round(0) removes the monotonic
// reading.
func elapsedBetween(from, to time.Time) time.Duration {
	return max(to.Sub(from), to.Round(0).Sub(from.Round(0)))
}

// observedLock is a lock that reports its renewals to the lease. An elector acquires the lock by Create or Update, and
// renews it by Update.
type observedLock struct {
	resourcelock.Interface

	lease *Lease
}

// Create calls Create of the wrapped lock, and reports the result to the lease.
func (s observedLock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return s.writeLease(ctx, record, s.Interface.Create)
}

// Update calls Update of the wrapped lock, and reports the result to the lease.
func (s observedLock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return s.writeLease(ctx, record, s.Interface.Update)
}

// writeLease writes the record. If the API server confirms the write, it sets the end of the permission to write.
func (s observedLock) writeLease(
	ctx context.Context, record resourcelock.LeaderElectionRecord,
	write func(context.Context, resourcelock.LeaderElectionRecord) error,
) error {
	// The lease counts from before the request, because the API server may have stored it at any time since then.
	sent := time.Now()
	err := write(ctx, record)
	switch {
	// After a failed write, the end that the last confirmed renewal set remains valid.
	case err != nil:
	case record.HolderIdentity == s.Identity():
		s.lease.allowWritesUntil(RenewalEnd(sent, time.Duration(record.LeaseDurationSeconds)*time.Second))
	default: // the process releases the lock
		s.lease.allowWritesUntil(sent)
	}
	return err
}
