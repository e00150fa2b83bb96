package source

import (
	"slices"
	"sync"
	"time"
)

// Patience is the time for which requests of one side may wait without one of them getting a slot. After it, Places
// reports a stall.
const Patience = 10 * time.Second

// class groups requests by their priority. Lower values are more urgent.
type class int8

const (
	tick class = iota
	deletion
	change
	retry
	resume
	classes
)

// shares are the numbers of turns of each class in one round. A round ends when no waiting class has turns left. So
// urgent classes go first, but all classes make progress. Raising the priority of old requests instead would put the
// whole first listing, which waits since the start, before every edit made now.
var shares = [classes]int{tick: 16, deletion: 8, change: 4, retry: 2, resume: 1}

// classOf returns the class of a request. Ticks of timers have their own class, whatever their priority is.
func classOf(r Request, priority int) class {
	switch {
	case r.Handler != "":
		return tick
	case priority >= PriorityDeletion:
		return deletion
	case priority >= PriorityChange:
		return change
	case priority >= PriorityRetry:
		return retry
	default:
		return resume
	}
}

// requestPriority returns the priority that controller-runtime reports for a request of the class.
func (c class) requestPriority() int {
	return [classes]int{
		PriorityTimer, PriorityDeletion, PriorityChange, PriorityRetry,
		PriorityResume,
	}[c]
}

// side is one of two groups of classes: deletions, and all others. Neither can take all slots.
type side int

const (
	others side = iota
	deletions
	sides
)

// slotSide returns the side that the slots of the class are counted for.
func (c class) slotSide() side {
	if c == deletion {
		return deletions
	}
	return others
}

// Places limits how many requests for the objects of one resource are served at once, in all namespaces together. A
// tenth of the slots, and at least one, is reserved for deletions, and as many for other requests. A single slot is
// reserved for neither. Ticks of timers need no slot, because package background runs them. All queues with the same
// Places share its lock.
type Places struct {
	// reserved is the number of slots that each side cannot take from the other.
	size, reserved int
	observer       PlacesObserver

	mu     sync.Mutex
	queues []*PriorityQueue
	// taken and waiting count the slots in use, and the requests that wait for their turn.
	taken    [sides]int
	waiting  [sides]int
	left     [classes]int // turns that are left in this round
	arrivals uint64       // last number given to a request that became ready
	stalls   [sides]stallState
}

// PlacesObserver holds the callbacks of Places. Each may be nil.
type PlacesObserver struct {
	// Waiting reports by how much the number of waiting requests has changed. Places calls it with its lock held, so it
	// must be quick.
	Waiting func(change int)
	// Stalled reports a stall once after Patience, and its end once no request waits any more. Places calls it on a
	// separate goroutine.
	Stalled func(Stall)
}

// NewPlaces creates the given number of slots, which must be positive.
func NewPlaces(size int, observer PlacesObserver) *Places {
	p := &Places{size: size, observer: observer}
	if size > 1 {
		p.reserved = max(1, size/10)
	}
	return p
}

// admitsClass reports whether a request of the class could be served now. The caller holds the lock.
func (p *Places) admitsClass(c class) bool {
	return c == tick || p.hasRoom(c.slotSide())
}

// hasRoom reports whether a request of this side could get a slot: within the share of the side, and within the total.
// The caller holds the lock.
func (p *Places) hasRoom(s side) bool {
	return p.taken[s] < p.size-p.reserved && p.taken[deletions]+p.taken[others] < p.size
}

// nextQueue returns the queue that may hand out a request, and the class of that request. It returns nil if no request
// may be served now. The caller holds the lock.
func (p *Places) nextQueue() (whose *PriorityQueue, with class) {
	for c := range classes {
		q := p.firstWaitingQueue(c)
		if q == nil || !p.admitsClass(c) {
			continue
		}
		if p.left[c] > 0 {
			return q, c
		}
		if whose == nil {
			whose, with = q, c // this class begins a new round, unless a less urgent one has turns left
		}
	}
	return whose, with
}

// firstWaitingQueue returns the queue with the oldest ready request of the class, among the queues where a worker
// waits. Otherwise a queue without a worker would block all others.
func (p *Places) firstWaitingQueue(c class) (first *PriorityQueue) {
	for _, q := range p.queues {
		if q.getters == 0 || q.ready[c].first == nil {
			continue
		}
		if first == nil || q.ready[c].first.arrival < first.ready[c].first.arrival {
			first = q
		}
	}
	return first
}

// acquireSlot uses up a turn of the class, and a slot unless it is for a tick. A class without turns begins a new
// round.
func (p *Places) acquireSlot(c class) {
	if p.left[c] == 0 {
		p.left = shares
	}
	p.left[c]--
	if c != tick {
		p.taken[c.slotSide()]++
	}
}

// releaseSlot frees the slot of a request of the class.
func (p *Places) releaseSlot(c class) {
	if c != tick {
		p.taken[c.slotSide()]--
	}
}

// countWaiting changes the number of requests of the class that wait for a turn. Ticks are not counted, because they do
// not wait for slots.
func (p *Places) countWaiting(c class, change int) {
	if c == tick {
		return
	}
	p.waiting[c.slotSide()] += change
	if p.observer.Waiting != nil {
		p.observer.Waiting(change)
	}
}

// wakeNextQueue must be called after every change of the slots or of a queue. It wakes the queue that has the next
// turn, and starts or stops the alarms of stalls. The caller holds the lock.
func (p *Places) wakeNextQueue() {
	if q, _ := p.nextQueue(); q != nil {
		q.turn.Signal()
	}
	for s := range sides {
		p.observeSide(s)
	}
}

// removeQueue removes a queue that was shut down. Its requests were dropped, not served, so it does not report the end
// of a stall.
func (p *Places) removeQueue(gone *PriorityQueue) {
	p.queues = slices.DeleteFunc(p.queues, func(q *PriorityQueue) bool { return q == gone })
	for s := range sides {
		if p.waiting[s] == 0 {
			p.stalls[s].reported = false
		}
	}
	p.wakeNextQueue()
}

// Stall describes requests that wait because all slots open to them are in use for long.
type Stall struct {
	// Deletions is true for requests of objects that are being deleted, and false for others.
	Deletions bool
	// Waiting is the number of waiting requests; zero when the stall is over.
	Waiting int
	// Since is the time from which requests wait while all of their slots are in use.
	Since time.Time
}

// stallState tracks the stall of one side.
type stallState struct {
	alarm    *alarm // runs while the side is full and requests wait; nil otherwise
	reported bool
}

// alarm is the timer of one possible stall. Its address identifies it, so that a timer that fires late is recognized.
type alarm struct {
	since time.Time
	timer *time.Timer
}

// observeSide starts or stops the alarm of a side, and reports the end of a stall. The caller holds the lock.
func (p *Places) observeSide(s side) {
	known := &p.stalls[s]
	full := p.waiting[s] > 0 && !p.hasRoom(s)
	switch {
	case full && known.alarm == nil:
		begun := &alarm{since: time.Now()}
		begun.timer = time.AfterFunc(Patience, func() { p.confirmStall(s, begun) })
		known.alarm = begun
	case !full && known.alarm != nil:
		known.alarm.timer.Stop()
		known.alarm = nil
	}
	// A free slot ends the alarm, but the reported stall only ends when no request waits.
	if known.reported && p.waiting[s] == 0 {
		known.reported = false
		go p.reportStall(Stall{Deletions: s == deletions})
	}
}

// CurrentStalls returns the present stalls, also those shorter than Patience.
func (p *Places) CurrentStalls() (all []Stall) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for s := range sides {
		if p.stalls[s].alarm != nil {
			all = append(all, Stall{Deletions: s == deletions, Waiting: p.waiting[s], Since: p.stalls[s].alarm.since})
		}
	}
	return all
}

// confirmStall reports a stall when its alarm fires, unless a slot became free just before.
func (p *Places) confirmStall(s side, off *alarm) {
	p.mu.Lock()
	known := &p.stalls[s]
	now := known.alarm == off && !known.reported
	known.reported = known.reported || now
	found := Stall{Deletions: s == deletions, Waiting: p.waiting[s], Since: off.since}
	p.mu.Unlock()
	if now {
		// Without the lock, because the observer may take long.
		p.reportStall(found)
	}
}

// reportStall calls the observer, if there is one.
func (p *Places) reportStall(found Stall) {
	if p.observer.Stalled != nil {
		p.observer.Stalled(found)
	}
}
