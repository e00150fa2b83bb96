package peering

import (
	"context"
	"sync"
	"time"

	"k8s.io/client-go/tools/leaderelection/resourcelock"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/logging"
)

const (
	// slack is LeaseDuration minus RenewDeadline of a manager, by its defaults: a process that stands still for longer
	// can lose its lease before its elector notices.
	slack = 5 * time.Second
	// pulse is how often a process notes that it does not stand still.
	pulse = time.Second
	// decided is the LeaseDuration of a manager, by its default: an elector that runs again has renewed the lease by
	// the end of it, or has ended the process.
	decided = 15 * time.Second
)

// Lease closes a gate when the process may have lost the lease of its manager unnoticed, as after it stood still: an
// elector that wakes up needs until its RenewDeadline to notice that another process leads.
//
// With [Lease.Around], the gate follows the renewals of the lease itself. Without, [Lease.Run] closes the gate when the
// process has stood still for longer than the slack of a manager's default timing, until its elector has decided.
type Lease struct {
	mu    sync.Mutex
	lock  resourcelock.Interface // nil if the renewals are not seen
	gate  Gate                   // nil before Follow
	until time.Time              // zero is without an end
}

// Around returns the lock with its renewals seen: the gate allows writes for seven eighths of the duration of each
// lease, from when its renewal was sent. The rest is for writes that are on their way.
func (l *Lease) Around(lock resourcelock.Interface) resourcelock.Interface {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lock = lock
	return seenLock{Interface: lock, lease: l}
}

// Follow has the gate follow the lease, in place of the gate before.
func (l *Lease) Follow(gate Gate) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.gate = gate
	gate.AllowWritesUntil(l.until)
}

// allow ends the permission to write at the given time.
func (l *Lease) allow(until time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.until = until; l.gate != nil {
		l.gate.AllowWritesUntil(until)
	}
}

// Run notices when the process has stood still, until the context ends. It returns at once if the renewals are seen.
func (l *Lease) Run(ctx context.Context) {
	l.mu.Lock()
	seen := l.lock != nil
	l.mu.Unlock()
	if seen {
		return
	}
	ticker := time.NewTicker(pulse)
	defer ticker.Stop()
	last, reopen := time.Now(), time.Time{}
	for ctx.Err() == nil {
		now := time.Now()
		if stood := between(last, now); stood > slack {
			logging.Warn(logf.FromContext(ctx), "Pausing operations, as the process stood still for longer than its "+
				"lease allows, and another process may lead", "stood", stood.String(), "for", decided.String())
			reopen = now.Add(decided)
		}
		if last = now; !now.Before(reopen) {
			l.allow(now.Add(slack))
		}
		select {
		case <-ctx.Done():
		case <-ticker.C:
		}
	}
	l.allow(time.Time{})
}

// between is the time from one reading of the clock to another. A machine that was suspended has a wall clock that went
// on, and another clock that may not have.
func between(from, to time.Time) time.Duration {
	return max(to.Sub(from), to.Round(0).Sub(from.Round(0)))
}

// seenLock is a lock with its renewals seen.
type seenLock struct {
	resourcelock.Interface

	lease *Lease
}

// Create is that of the lock.
func (s seenLock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return s.renew(ctx, record, s.Interface.Create)
}

// Update is that of the lock.
func (s seenLock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return s.renew(ctx, record, s.Interface.Update)
}

// renew notes until when the process leads, if the API server confirms that it does.
func (s seenLock) renew(
	ctx context.Context, record resourcelock.LeaderElectionRecord,
	write func(context.Context, resourcelock.LeaderElectionRecord) error,
) error {
	sent := time.Now()
	err := write(ctx, record)
	duration := time.Duration(record.LeaseDurationSeconds) * time.Second
	switch {
	case err != nil:
	case record.HolderIdentity == s.Identity():
		s.lease.allow(sent.Add(duration - duration/8))
	default: // the process gives it up
		s.lease.allow(sent)
	}
	return err
}
