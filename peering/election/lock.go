package election

import (
	"context"
	"errors"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/kopf-runtime/kopf-runtime/internal/logging"
)

// leaseLock is the Lease for the elector. It passes all answers of the API server to the election. Unlike the lock of
// client-go, it shows every version of the Lease as a change: another client may restore the content of before a
// renewal.
type leaseLock struct {
	client   coordinationv1client.LeaseInterface
	election *Election
	lease    *coordinationv1.Lease // the newest known version
}

var _ resourcelock.Interface = (*leaseLock)(nil)

// Get reads the Lease. The elector gets a lease duration of other holders within limits, because another client may
// have changed it.
func (l *leaseLock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record, err := l.readRecord(ctx)
	if err != nil {
		if !apierrors.IsNotFound(err) {
			l.election.noteFailure(ctx, err)
		}
		return nil, nil, err
	}
	shown := *record
	if shown.HolderIdentity != l.Identity() {
		const shortest, longest = int(leaseDuration / time.Second), int(longestDuration / time.Second)
		shown.LeaseDurationSeconds = min(max(shown.LeaseDurationSeconds, shortest), longest)
	}
	return &shown, []byte(l.lease.UID + "/" + types.UID(l.lease.ResourceVersion)), nil
}

// readRecord reads the Lease, and passes the answer to the election.
func (l *leaseLock) readRecord(ctx context.Context) (*resourcelock.LeaderElectionRecord, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	lease, err := l.client.Get(ctx, l.election.Lease.Name, metav1.GetOptions{})
	if err != nil {
		if apierrors.IsNotFound(err) {
			l.election.observeRecord(nil, "")
		}
		return nil, err
	}
	l.lease = lease
	record := resourcelock.LeaseSpecToLeaderElectionRecord(&lease.Spec)
	l.election.observeRecord(record, lease.ResourceVersion)
	return record, nil
}

// Create creates the Lease with the own record.
func (l *leaseLock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	sent := time.Now()
	return l.confirm(ctx, sent, record, l.create(ctx, record))
}

// Update writes the own record.
func (l *leaseLock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	sent := time.Now()
	return l.confirm(ctx, sent, record, l.update(ctx, record))
}

// confirm passes the result of a write of the own record to the election. The permission to write counts from before
// the request, because the API server may have stored the record at any time since then.
func (l *leaseLock) confirm(
	ctx context.Context, sent time.Time, record resourcelock.LeaderElectionRecord, err error,
) error {
	if err != nil {
		l.election.noteUnconfirmed(record)
		if !apierrors.IsNotFound(err) { // another client has removed the Lease
			l.election.noteFailure(ctx, err)
		}
		return err
	}
	l.election.confirmRecord(sent, record, l.lease.ResourceVersion)
	return nil
}

// create creates the Lease with a record.
func (l *leaseLock) create(ctx context.Context, record resourcelock.LeaderElectionRecord) (err error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	at := l.election.Lease
	created, err := l.client.Create(ctx, &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: at.Namespace, Name: at.Name},
		Spec:       resourcelock.LeaderElectionRecordToLeaseSpec(&record),
	}, metav1.CreateOptions{})
	if err == nil {
		l.lease = created
	}
	return err
}

// update writes a record, unless the Lease has another version than the known one.
func (l *leaseLock) update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	wanted := l.lease.DeepCopy()
	wanted.Spec = resourcelock.LeaderElectionRecordToLeaseSpec(&record)
	updated, err := l.client.Update(ctx, wanted, metav1.UpdateOptions{})
	if err == nil {
		l.lease = updated
	}
	return err
}

// RecordEvent does nothing: the election logs all changes.
func (*leaseLock) RecordEvent(string) {}

// Identity returns the identity of this process.
func (l *leaseLock) Identity() string { return l.election.Identity }

// Describe returns the name of the Lease.
func (l *leaseLock) Describe() string { return l.election.Lease.String() }

// noteFailure stores and logs a failed request. A conflict is none: the elector reads the Lease then.
func (e *Election) noteFailure(ctx context.Context, err error) {
	if errors.Is(ctx.Err(), context.Canceled) || apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.failure = err
	e.logOnce(failed, func() {
		if apierrors.IsForbidden(err) {
			e.log.Error(err, "No right on the Lease; no handlers are called without it: see docs/permissions.md")
			return
		}
		logging.Warn(e.log, "Cannot read or renew the Lease; handlers are called only while the process holds it",
			"reason", err.Error())
	})
}

// prepareLease makes sure that there is a Lease, and returns true if the elector can be run. After an error it waits
// before it returns. Without a right on Leases, the operator acts without an election if it is optional, unless the
// Lease was readable before: then another process may hold it.
func (e *Election) prepareLease(ctx context.Context) bool {
	err := e.findOrCreateLease(ctx)
	e.mu.Lock()
	visible, isOpen, elects := e.visible, e.isOpen, e.elects
	e.mu.Unlock()
	switch {
	case err == nil:
		// The operator acted without a right, which it has now.
		if isOpen && !elects {
			e.closeAtOnce()
		}
		return true
	case apierrors.IsForbidden(err) && e.Optional && !visible:
		e.actWithoutRight(ctx, err)
	default:
		e.noteFailure(ctx, err)
		wait(ctx, retryPeriod)
	}
	return false
}

// findOrCreateLease reads the Lease, or creates it without a holder. A new Lease is not marked as released: another
// client may have removed the Lease of a holder that still acts.
func (e *Election) findOrCreateLease(ctx context.Context) error {
	_, err := e.lock.readRecord(ctx)
	if !apierrors.IsNotFound(err) {
		return err
	}
	empty := resourcelock.LeaderElectionRecord{LeaseDurationSeconds: int(leaseDuration / time.Second)}
	err = e.lock.create(ctx, empty)
	switch {
	case err == nil:
		e.observeRecord(&empty, e.lock.lease.ResourceVersion)
	case apierrors.IsAlreadyExists(err):
		return nil
	}
	return err
}

// actWithoutRight lets the operator act without an election for some time.
func (e *Election) actWithoutRight(ctx context.Context, err error) {
	e.mu.Lock()
	if !e.isOpen {
		logging.Warn(e.log, "No right on Leases, so no leader is elected: run one replica, or add the rule of "+
			"docs/permissions.md; --leader-elect=false silences this", "reason", err.Error())
		e.openWithoutLimit()
	}
	e.mu.Unlock()
	wait(ctx, probeInterval)
}

// releaseLease lets the next process get the Lease at once. With another lease duration than releasedSeconds, that
// process waits before it acts. An error is not retried, because the Lease ends by itself.
func (e *Election) releaseLease(ctx context.Context, seconds int) {
	ctx = context.WithoutCancel(ctx)
	record, err := e.lock.readRecord(ctx)
	if err == nil && record.HolderIdentity == e.Identity {
		now := metav1.Now()
		err = e.lock.update(ctx, resourcelock.LeaderElectionRecord{
			LeaseDurationSeconds: seconds, LeaderTransitions: record.LeaderTransitions, RenewTime: now,
			AcquireTime: now,
		})
	}
	if err != nil && !apierrors.IsNotFound(err) {
		e.log.Info("Could not release the Lease; it ends by itself", "reason", err.Error())
	}
}
