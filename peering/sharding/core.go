package sharding

import (
	"math/rand/v2"
	"time"

	"github.com/go-logr/logr"

	"github.com/kopf-runtime/kopf-runtime/internal/logging"
	"github.com/kopf-runtime/kopf-runtime/peering"
)

// phase is the state of a held range.
type phase int

const (
	stale   phase = iota // it was held; it must be written again in the present term before its gate opens
	waiting              // it is acquired, but an unknown former holder may still act
	serving              // its gate is open
	leaving              // its gate is closed; it is released when it is idle
)

// heldRange is a range that this process holds, or held before an outage.
type heldRange struct {
	phase     phase
	permitted bool      // it was acquired in this term: its permission to write follows the own renewals
	own       *lease    // as this process wrote it last, or as the last list showed it since
	opens     time.Time // when it may open; zero is at once
	sequence  int       // the order in which ranges were acquired
	leaveBy   time.Time // when a busy range is released nevertheless
}

// shownRange is the Lease of a range as the last list has shown it.
type shownRange struct {
	lease     *lease    // nil without one
	since     time.Time // when a list has first shown this version
	ownerless time.Time // since when no process holds it; zero if one does
	isOwn     bool      // it names this process
}

// versionOf returns the version of a Lease, or "" without one.
func versionOf(l *lease) string {
	if l == nil {
		return ""
	}
	return l.version
}

// sighting is the state of a replica's Lease in the lists so far.
type sighting struct {
	version string    // "" without a Lease
	since   time.Time // when a list has first shown this version
	isDead  bool
}

// core decides which ranges this process holds. It makes no requests: it observes lists, plans writes, and gets their
// results. One goroutine uses it.
//
// # Terms
//
// A term of this process begins when its own Lease is renewed and the layout is written after that. It ends when the
// permission to write ends even for a moment, when the own Lease is removed, or when the layout changes. The gate of a
// range opens only after a confirmed write of its Lease in the present term. A process that takes a range from a dead
// holder has seen in a list that the holder's permission had ended. Its write needs the version of that list. So either
// this write fails, or that of the former holder in its next term.
type core struct {
	Options

	names
	own  string // the name of the own Lease
	log  logr.Logger
	view view

	isRenewed, isLayoutDone, isRangesDone, isCleaned bool // planned since the last list

	self        *lease    // the own Lease as last known; nil without one
	renewed     time.Time // when the list was requested that preceded the last confirmed renewal
	renewedAt   time.Time // when that renewal was sent
	isConfirmed bool      // it was confirmed since the last list
	inTerm      bool
	until       time.Time // end of the permission to write in this term
	isEnding    bool      // the process ends: it leaves all ranges
	isPaused    bool      // the peers paused the operator in this process, as of the last list
	outdone     time.Time // since when lists have shown that this process is paused and another one is not; or zero
	yields      bool      // it leaves all ranges, because another replica is not paused

	layoutVersion string
	layoutSince   time.Time            // when a list has first shown this version
	layoutFloor   time.Time            // the layout was written after this time
	layoutJitter  time.Duration        // so that not all replicas renew the layout
	jitter        func() time.Duration // a random one for the next version of the layout
	opensFrom     time.Time            // no range may open before, because the layout did not exist
	// noWaitUntil is set when this process takes a layout by which no process acts. Until then, ranges of the same list
	// open without a wait. The next list resets it, because other replicas may act after it.
	noWaitUntil time.Time

	sightings map[string]sighting // by name of the replica's Lease
	live      int                 // how many replicas share the ranges
	nextDeath time.Time           // when a silent replica is dead, unless it is renewed; zero without one
	isFirst   bool                // no other live replica has a smaller identity
	gates     []peering.AttemptGate
	shown     []shownRange

	isAnyOwnerless bool
	mayNotRemove   bool // deletions of Leases are forbidden, so old ones stay

	ranges    []*heldRange // by index; nil unless this process holds it
	sequence  int
	announced []int
	isChanged bool // ranges are held or left since they were announced
	moves     Moves
	logged    string

	acquired, left, lost []int // that are not logged yet
}

// newCore returns a core that holds nothing. All gates are closed.
func newCore(o Options) *core {
	n := names{layout: o.Lease.Name, shards: o.Count}
	c := &core{
		Options: o, names: n, own: n.replicaOf(o.Identity), log: logr.Discard(), sightings: map[string]sighting{},
		ranges: make([]*heldRange, o.Count), shown: make([]shownRange, o.Count),
		view: view{ranges: make([]*lease, o.Count)}, jitter: newJitter,
	}
	for i := range o.Count {
		c.gates = append(c.gates, o.GateFor(i))
		c.gates[i].Set(true)
	}
	return c
}

// newJitter returns a random delay, so that the replicas do not write the layout at the same time.
func newJitter() time.Duration { return rand.N(2 * time.Second) } //nolint:gosec // no secret

// hasPassed compares both clocks: while a machine is suspended, its wall clock goes on, and its monotonic clock may
// not.
func hasPassed(t, now time.Time) bool {
	return !now.Before(t) || !now.Round(0).Before(t.Round(0))
}

// writableUntil returns the end of the permission to write. It counts from when the list was requested that preceded
// the last confirmed renewal: a process that does not get lists does not notice when it loses a range. It also ends
// before the layout can be taken, as no replica may be able to renew it.
func (c *core) writableUntil() time.Time {
	end := peering.RenewalEnd(c.renewed, leaseDuration)
	limit := peering.RenewalEnd(c.layoutFloor, layoutDuration)
	if limit.Before(end) {
		return limit
	}
	return end
}

// beginTerm starts a term after the writes of the own Lease and of the layout.
func (c *core) beginTerm(now time.Time) {
	if c.until = c.writableUntil(); hasPassed(c.until, now) {
		return
	}
	c.inTerm = true
	c.logOnce("term", func() { c.log.Info("Taking part in sharing the ranges", "count", c.Count) })
}

// extend applies the present permission to write to the gates of this term.
func (c *core) extend() {
	c.until = c.writableUntil()
	for i, r := range c.ranges {
		if r != nil && r.permitted {
			c.gates[i].AllowWritesUntil(c.until)
		}
	}
}

// checkLapse ends the term if its permission to write has ended. It comes before every use of a new renewal.
func (c *core) checkLapse(now time.Time) {
	if !c.inTerm || !hasPassed(c.until, now) {
		return
	}
	c.endTerm()
	c.logOnce("lapsed", func() {
		logging.Warn(c.log, "Pausing operations in all ranges, as the own Lease could not be renewed in time")
	})
	// The others may have had the same outage. They get a lease duration to renew their Leases.
	c.sightings = map[string]sighting{}
}

// endTerm closes all gates. The ranges stay announced, because unsaved outcomes are kept unless another process gets
// the range.
func (c *core) endTerm() {
	c.inTerm, c.noWaitUntil = false, time.Time{}
	for i, r := range c.ranges {
		if r != nil {
			c.gates[i].Set(true)
			r.phase, r.permitted = stale, false
		}
	}
}

// dropRange closes a range that this process does not hold any more, at once.
func (c *core) dropRange(i int, now time.Time) {
	c.gates[i].Set(true)
	c.gates[i].AllowWritesUntil(now)
	c.ranges[i], c.isChanged = nil, true
}

// loseRange drops a range that another process or client has changed.
func (c *core) loseRange(i int, now time.Time) {
	c.dropRange(i, now)
	c.moves.Lost++
	c.lost = append(c.lost, i)
}

// settle announces the ranges after changes, and then opens the gates that are due. A range that had to wait opens only
// by a list from after its waiting, which still shows the own version.
func (c *core) settle(now time.Time) {
	c.checkLapse(now)
	c.logMoves()
	if c.isChanged {
		c.isChanged, c.announced = false, c.announced[:0:0]
		for i, r := range c.ranges {
			if r != nil {
				c.announced = append(c.announced, i)
			}
		}
		c.SetRanges(c.announced)
	}
	for i, r := range c.ranges {
		if r == nil || !c.inTerm || r.phase != waiting || r.opens.After(c.view.requested) {
			continue
		}
		r.phase = serving
		c.gates[i].AllowWritesUntil(c.until)
		c.gates[i].Set(false)
	}
}

// logMoves logs all ranges of one step in one line.
func (c *core) logMoves() {
	if len(c.acquired) > 0 {
		c.log.Info("Acquired ranges", "ranges", c.acquired)
	}
	if len(c.left) > 0 {
		c.log.Info("Left ranges", "ranges", c.left)
	}
	if len(c.lost) > 0 {
		logging.Warn(c.log, "Pausing operations in ranges, as their Leases were taken over, changed or removed",
			"ranges", c.lost)
	}
	c.acquired, c.left, c.lost = nil, nil, nil
}

// logOnce logs a state unless it was the last one to be logged.
func (c *core) logOnce(state string, log func()) {
	if c.logged != state {
		c.logged = state
		log()
	}
}

// Load is what one replica works on.
type Load struct {
	// Objects is the number of objects in its ranges.
	Objects int `json:"objects"`
	// Backlog is the number of objects with unfinished changes.
	Backlog int `json:"backlog"`
}

// Moves counts changes of the ranges of one process.
type Moves struct {
	Acquired int // by this process
	Left     int // for another replica, or at the end
	Lost     int // to another replica or client, after an outage or a suspension
}
