package peering

import (
	"context"
	"sync"
	"time"

	"github.com/go-logr/logr"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
)

// sharedObject is the peering object of a member. PatchStatus merges records into its status and returns the resulting
// object. With a resourceVersion, it fails with a conflict if the object has another version.
type sharedObject interface {
	PatchStatus(ctx context.Context, status map[string]any, resourceVersion string) (map[string]any, error)
}

// WriteGate is closed while the operator must not act. Its methods are called with locks held, so they must return
// quickly.
type WriteGate interface {
	// Set closes the gate, or opens it. It may be called again with the same value.
	Set(closed bool)
	// AllowWritesUntil sets the time after which nothing may be written, because another operator may act then. The
	// zero time removes the limit. It is called for each renewal.
	AllowWritesUntil(end time.Time)
}

// AttemptGate is a gate that counts the running attempts behind it.
type AttemptGate interface {
	WriteGate

	// Busy returns the number of running attempts, which only falls while the gate is closed.
	Busy() int
	// Idle returns a channel that is closed when nothing is running, which may be the case already.
	Idle() <-chan struct{}
}

// Runtime is the value of the field "runtime" in the records of this framework. Kopf's records do not have the field.
const Runtime = "kopf-runtime"

// Member is the configuration of one operator in one peering object.
type Member struct {
	// Self is the operator.
	Self Self
	// Name is the name of the peering object. Other objects are ignored.
	Name string
	// Lifetime is how long a record is valid. Default: [DefaultLifetime].
	Lifetime time.Duration
	// Busy returns the number of running attempts, which only falls while the gate is closed. It must return quickly.
	// Nil means zero.
	Busy func() int
	// Idle returns a channel that is closed when no attempt is running, or soon after. Nil means that the end of
	// attempts is not reported; the loop then notices it at the next renewal.
	Idle func() <-chan struct{}
	// Jitter is how long before its end a record is renewed. Nil renews it after a third of its lifetime.
	Jitter func() time.Duration
	// Skew is how far clocks may differ. The operator does not wait for a peer whose record has expired for longer.
	// Default: [DefaultSkew]; negative is zero.
	Skew time.Duration
	// SilentPeerWait is how long the operator waits, with its record published, for peers that cannot report that they
	// are idle, such as those of Kopf. Zero or less does not wait.
	SilentPeerWait time.Duration
	// Mandatory pauses the operator while its record cannot be published, because the object is missing or writing is
	// forbidden. Otherwise it acts alone then.
	Mandatory bool
	// KopfRules treats the records of others as Kopf does: a record without a time is always valid, and the records of
	// a removed object do not expire. Otherwise, a record without a time counts from when it was first seen.
	KopfRules bool
	// Acting is true if the operator already acts, without a record. It pauses only for peers.
	Acting bool
	// Notify is called with the identities of the peers for which the operator pauses, and with an empty list when it
	// resumes. It must return quickly. It may be nil.
	Notify func(peers []string)
	// OnAnswer is called when IsAnswered becomes true. It must return quickly. It may be nil.
	OnAnswer func()
	// LeaseDecides is true if a Lease decides who acts while the record cannot be published. Log lines say so.
	LeaseDecides bool
	// Stealth omits log lines about keep-alives.
	Stealth bool
}

// recordLifetime returns the lifetime of records, with its default.
func (m Member) recordLifetime() time.Duration {
	if m.Lifetime == 0 {
		return DefaultLifetime
	}
	return m.Lifetime
}

// runningAttempts returns the number of running attempts, which is zero without a Busy function.
func (m Member) runningAttempts() int {
	if m.Busy == nil {
		return 0
	}
	return m.Busy()
}

// membership keeps the record of one operator in one peering object, and closes its gate while the records of others
// demand that.
//
// # Guarantees
//
// No two members of one object act at once, even if their clocks differ:
//
//   - The gate opens when the record reports that the operator acts, and all peers that must yield report that they are
//     idle. For peers that cannot report that, the operator waits for [Member.SilentPeerWait].
//   - The gate closes 2 seconds before the record expires for others, but not before half of its lifetime, counted from
//     the sending of the last confirmed record. The gate gets this time in advance.
//   - When the last attempt has ended, the record reports that, and is removed. The operator waits for attempts no
//     longer than a lifetime; after that, the record expires.
//   - A record that another client removes is written again at once, and later at most once a second. The others
//     respect its last content until the end of its lifetime, because its operator may be alive. An operator that has
//     not seen it begins no earlier than a second after its own record is published.
type membership struct {
	object sharedObject
	gate   WriteGate
	log    logr.Logger
	wake   chan struct{} // signals the loop that a request may be due; has room for one signal

	removals sync.WaitGroup // of expired records, at most one at a time

	mu            sync.Mutex
	state         memberState
	decisionTimer *time.Timer       // for decisions that change by time alone
	logged        map[string]string // by matter, to log each state once
}

// joinObject returns a membership in the object. Its gate is closed until the operator may act, unless it is already
// acting. The membership makes requests only in membership.Run.
func (m Member) joinObject(ctx context.Context, object sharedObject, gate WriteGate) *membership {
	joined := &membership{
		object: object, gate: gate, log: logf.FromContext(ctx).WithValues("peering", m.Name),
		wake: make(chan struct{}, 1), state: newState(m), logged: map[string]string{},
	}
	if joined.state.isClosed {
		gate.Set(true)
	}
	return joined
}

// IsAnswered reports whether the demands of the peers are known and applied to the gate, and the record is published or
// cannot be stored. Once true, it remains so.
func (m *membership) IsAnswered() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.state.isAnswered
}

// IsPublished reports whether the object has the record of the operator, or had it until an outage: then the records
// decide who acts. The answer is unknown until the API server has answered.
func (m *membership) IsPublished() (published, known bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	record := m.state.record
	return record == recordPublished || record == recordExpired, record != recordUnknown
}

// Self returns the operator.
func (m *membership) Self() Self { return m.state.member.Self }

// NewestRecords returns the newest records by identity, with the operator's own, and with expired ones until they are
// removed.
func (m *membership) NewestRecords() map[string]PeerRecord {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.state.peers.validRecords(time.Now())
}
