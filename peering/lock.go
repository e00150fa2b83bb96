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

// Lock has a manager elect its leader by a peering: it leads while the gate of its membership is open. The gate has to
// be told to it, as to any other [Gate]; until then, it is closed.
//
// An elector notices that it does not lead any more only after its RenewDeadline, and gives no time to anybody then. So
// what must stop in an orderly way has to have a gate of its own, which is closed at the same time.
type Lock struct {
	identity, name string

	mu     sync.Mutex
	open   bool
	record *resourcelock.LeaderElectionRecord // that of this process, while it leads
}

var (
	_ resourcelock.Interface = (*Lock)(nil)
	_ Gate                   = (*Lock)(nil)
)

// NewLock makes the lock of an operator in a peering of this name.
func NewLock(identity, name string) *Lock { return &Lock{identity: identity, name: name} }

// Set lets the process lead while the gate is open.
func (l *Lock) Set(closed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open = !closed
	if closed {
		l.record = nil
	}
}

// AllowWritesUntil makes no difference: the gate is closed by then.
func (*Lock) AllowWritesUntil(time.Time) {}

// errNotFree is what an elector gets that leads, when it must not lead any more.
var errNotFree = errors.New("another operator of the peering may act")

// others is what an elector takes for the leader where the peering does not say who it is.
const others = "another operator of the peering"

// othersLease is for how long an elector waits, unless it asks again.
const othersLease = 15

// Get gives the record of this process if it leads; none if it may; that of somebody else otherwise, renewed each time.
func (l *Lock) Get(context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	record := l.record
	switch {
	case !l.open:
		record = &resourcelock.LeaderElectionRecord{
			HolderIdentity: others, LeaseDurationSeconds: othersLease, RenewTime: metav1.Now(),
		}
	case record == nil:
		return nil, nil, apierrors.NewNotFound(schema.GroupResource{Resource: "peering"}, l.name)
	}
	raw, err := json.Marshal(record)
	return record, raw, err
}

// Create makes the process the leader, if it may be.
func (l *Lock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.Update(ctx, record)
}

// Update renews or gives up that the process leads.
//
// # Errors
//
// It must not lead any more.
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

// RecordEvent does nothing: the members log what changes.
func (*Lock) RecordEvent(string) {}

// Identity is that of the operator among its peers.
func (l *Lock) Identity() string { return l.identity }

// Describe names the lock in logs.
func (l *Lock) Describe() string { return "peering " + l.name }
