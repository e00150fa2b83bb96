package peering

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// Lock makes a manager's leader election follow a peering: the process leads while the lock is open. A membership sets
// the lock as its [WriteGate]; before that, it is closed.
//
// An elector notices the loss of leadership only after its RenewDeadline, and then ends the process at once. Handlers
// that must stop in an orderly way need another gate, which is closed at the same time.
type Lock struct {
	identity, name string

	mu     sync.Mutex
	open   bool                               // this process may lead
	record *resourcelock.LeaderElectionRecord // of this process, while it leads
}

var (
	_ resourcelock.Interface = (*Lock)(nil)
	_ WriteGate              = (*Lock)(nil)
)

// NewLock returns the lock of an operator in a peering of this name.
func NewLock(identity, name string) *Lock { return &Lock{identity: identity, name: name} }

// Set lets the process lead while the gate is open. Closing it discards the leader record, so the elector's next
// renewal fails.
func (l *Lock) Set(closed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open = !closed
	if closed {
		l.record = nil
	}
}

// AllowWritesUntil does nothing, because the gate is closed at that time.
func (*Lock) AllowWritesUntil(time.Time) {}

// errNotFree is returned to an elector that must not lead any more. The elector treats it as a failed renewal.
var errNotFree = errors.New("another operator of the peering may act")

// foreignHolder is the holder's identity in the lock while this process must not lead. It must differ from each
// identity.
const foreignHolder = "another operator of the peering"

// foreignLeaseSeconds is how many seconds an elector waits for the lease of others. Each reading of the lock returns a
// fresh renew time, so the lease never expires while the lock is closed.
const foreignLeaseSeconds = 15

// Get returns the record of this process if it leads, a not-found error if it may lead, and otherwise a fresh record of
// the others.
func (l *Lock) Get(context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	record := l.record
	switch {
	case !l.open:
		record = &resourcelock.LeaderElectionRecord{
			HolderIdentity: foreignHolder, LeaseDurationSeconds: foreignLeaseSeconds, RenewTime: metav1.Now(),
		}
	case record == nil:
		return nil, nil, apierrors.NewNotFound(schema.GroupResource{Resource: "peering"}, l.name)
	}
	raw, err := json.Marshal(record)
	return record, raw, err
}

// Create makes the process the leader, if it may lead.
func (l *Lock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.Update(ctx, record)
}

// Update renews or releases the leadership of the process.
//
// # Errors
//
// The process must not lead any more.
func (l *Lock) Update(_ context.Context, record resourcelock.LeaderElectionRecord) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case record.HolderIdentity == "":
		l.record = nil
	case !l.open:
		return errNotFree
	default:
		l.record = &record
	}
	return nil
}

// RecordEvent does nothing, because the memberships log all changes.
func (*Lock) RecordEvent(string) {}

// Identity returns the name of the operator among its peers.
func (l *Lock) Identity() string { return l.identity }

// Describe returns the name of the lock in logs.
func (l *Lock) Describe() string { return "peering " + l.name }
