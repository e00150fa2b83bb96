package peering

import (
	"context"
	"sync"
	"time"

	"github.com/go-logr/logr"
)

// Object is the peering object of a member. What it is called with is a merge-patch of its status, wherever its kind
// has that: as a subresource or not. It gives the object as it is then. With a resourceVersion, it is a conflict if the
// object has another one by then.
type Object interface {
	PatchStatus(ctx context.Context, status map[string]any, resourceVersion string) (map[string]any, error)
}

// Gate is closed while the operator must not act. Its methods are quick.
type Gate interface {
	Set(closed bool)
	// AllowWritesUntil gives the time after which nothing may be written any more, as another operator may act by then;
	// zero is without an end. It is told again and again.
	AllowWritesUntil(end time.Time)
}

// Member keeps the record of one operator in one peering object, and does what the records of the others ask for. With
// a Runtime, it is careful, as members of Kopf are not: see
// [Membership.KeepAlive].
type Member struct {
	// Self is the operator.
	Self Self
	// Name is that of the peering object: others are ignored.
	Name string
	// Lifetime is how long a record is good; zero is [DefaultLifetime], negative removes it.
	Lifetime time.Duration
	// Runtime is what its records say to be of; empty for those that are as Kopf's.
	Runtime string
	// Busy counts the attempts that are running: of a closed gate, it only falls. Nil is none. It is quick.
	Busy func() int
	// Idle gives what is closed when none is running, or soon after. Nil is never.
	Idle func() <-chan struct{}
	// Jitter is how much earlier than its end a record is renewed; nil is [KopfJitter] without a Runtime, and with one
	// it is renewed after a third of its lifetime.
	Jitter func() time.Duration
	// Skew is how far clocks may differ: a record of ours that has ended for longer is not waited for. Zero is
	// [DefaultSkew], negative none.
	Skew time.Duration
	// Wait is how long the operator waits, with its record in place, for peers that must let it act and do not say when
	// they are at rest, as those of Kopf. Zero or less does not wait.
	Wait time.Duration
	// Mandatory pauses the operator where its record cannot be written: there is no such object, or it is not allowed.
	// Otherwise it acts alone there.
	Mandatory bool
	// KopfRules believes records as Kopf does: one without a time is of now, whenever it is read, and records of an
	// object that was removed never end. Otherwise, a time that is missing is when the record was seen first, and all
	// records end with their lifetimes, whether the object is there or not.
	KopfRules bool
	// Acting says that the operator acts already, without a record: it pauses only if it must.
	Acting bool
	// Notify is called when the operator pauses, with the identities of the peers that it pauses for, and when it
	// resumes, with none. It is quick. Nil is not called.
	Notify func(peers []string)
	// Stealth does not log that the record is kept alive.
	Stealth bool
}

// Membership is a [Member] in one peering object.
type Membership struct {
	member  Member
	object  Object
	gate    Gate
	writing chan struct{} // has room for whoever writes
	poke    chan struct{} // there may be something to write
	news    chan struct{} // there may be something to do about the records of others

	mu        sync.Mutex
	log       logr.Logger
	sightings sightings
	verdict   Verdict
	version   string // of the object that was seen last
	standing  standing
	closed    bool
	opening   bool          // it means to open the gate
	acting    bool          // it acts without a record
	missing   bool          // the record is not as it was written
	told      int           // how busy the record says to be
	restored  time.Time     // when it was written last because it was missing
	haste     time.Duration // how soon after that it is written once more
	joined    time.Time     // since when the record is there, without a break
	until     time.Time     // when the record counts as lost; zero is unknown
	alarm     *time.Timer   // for what happens by time alone
	left      bool
	said      map[string]string
	answered  chan struct{} // is closed when it is known what the peers ask for
}

// standing is how far the others know of a member.
type standing int

const (
	unanswered standing = iota // the API server has not answered yet
	known                      // its record is there, and good
	alone                      // there is no place for its record
	lapsed                     // its record could not be renewed in time
)

// Join gives a membership that keeps its record in the object, and acts by the gate. With a Runtime, the gate is closed
// until the operator may act, unless it is acting already.
func (m Member) Join(object Object, gate Gate) *Membership {
	waits := m.ours() && !m.Acting
	joined := &Membership{
		member: m, object: object, gate: gate, writing: make(chan struct{}, 1), poke: make(chan struct{}, 1),
		news:      make(chan struct{}, 1),
		sightings: sightings{own: m.Self.Identity, skew: m.Skew, dated: !m.KopfRules},
		said:      map[string]string{}, log: logr.Discard(), closed: waits, opening: waits, acting: m.Acting,
		answered: make(chan struct{}),
	}
	if waits {
		gate.Set(true)
	}
	return joined
}

// Answered is closed when it is known what the peers ask for, and done: that the gate is closed, if need be; or that
// there is no place for records. With a Runtime, they know of the member by then, too.
func (m *Membership) Answered() <-chan struct{} { return m.answered }

// Self is the operator whose membership it is.
func (m *Membership) Self() Self { return m.member.Self }

// Records are those that the member has seen last, its own among them, by identities: those that are good no more as
// well, until they are removed.
func (m *Membership) Records() map[string]Record {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.sightings.records(time.Now())
}

// settle notes that the peers are known. The lock is held.
func (m *Membership) settle() {
	select {
	case <-m.answered:
	default:
		close(m.answered)
	}
}

// ours tells whether the records say more than Kopf's.
func (m Member) ours() bool { return m.Runtime != "" }

func (m Member) lifetime() time.Duration {
	if m.Lifetime == 0 {
		return DefaultLifetime
	}
	return m.Lifetime
}
