package source

import (
	"slices"
	"sync"
	"time"
)

// StallTimeout is the time for which requests of one side may wait without one of them getting a slot. After it, Places
// reports a stall.
const StallTimeout = 10 * time.Second

// class groups requests by their priority. Lower values are more urgent.
type class int8

const (
	classTick class = iota
	classDeletion
	classChange
	classRetry
	classResume
	classCount
)

// turnsPerRound are the numbers of turns of each class in one round. A round ends when no waiting class has turns left.
// So urgent classes go first, but all classes make progress. Raising the priority of old requests instead would put the
// whole first listing, which waits since the start, before every edit made now.
var turnsPerRound = [classCount]int{classTick: 16, classDeletion: 8, classChange: 4, classRetry: 2, classResume: 1}

// classOf returns the class of a request. Ticks of timers have their own class, whatever their priority is.
func classOf(r Request, priority int) class {
	switch {
	case r.Handler != "":
		return classTick
	case priority >= PriorityDeletion:
		return classDeletion
	case priority >= PriorityChange:
		return classChange
	case priority >= PriorityRetry:
		return classRetry
	default:
		return classResume
	}
}

// requestPriority returns the priority that controller-runtime reports for a request of the class.
func (c class) requestPriority() int {
	return [classCount]int{
		PriorityTimer, PriorityDeletion, PriorityChange, PriorityRetry,
		PriorityResume,
	}[c]
}

// side is one of two groups of classes: deletions, and all others. Neither can take all slots.
type side int

const (
	sideOthers side = iota
	sideDeletions
	sideCount
)

// slotSide returns the side that the slots of the class are counted for.
func (c class) slotSide() side {
	if c == classDeletion {
		return sideDeletions
	}
	return sideOthers
}

// Slots limits how many requests for the objects of one resource are served at once, in all namespaces together. A
// tenth of the slots, and at least one, is reserved for deletions, and as many for other requests. A single slot is
// reserved for neither. Ticks of timers need no slot, because package background runs them. All queues with the same
// Places share its lock.
type Slots struct {
	// reserved is the number of slots that each side cannot take from the other.
	size, reserved int
	observer       SlotsObserver

	mu     sync.Mutex
	queues []*PriorityQueue
	// slotsInUse and waiting count the slots in use, and the requests that wait for their turn.
	slotsInUse      [sideCount]int
	waitingRequests [sideCount]int
	turnsLeft       [classCount]int // turns that are left in this round
	arrivals        uint64          // last number given to a request that became ready
	stalls          [sideCount]stallState
}

// SlotsObserver holds the callbacks of Places. Each may be nil.
type SlotsObserver struct {
	// OnWaiting reports by how much the number of waiting requests has changed. Places calls it with its lock held, so
	// it must be quick.
	OnWaiting func(change int)
	// OnStall reports a stall once after Patience, and its end once no request waits any more. Places calls it on a
	// separate goroutine.
	OnStall func(Stall)
}

// NewSlots creates the given number of slots, which must be positive.
func NewSlots(size int, observer SlotsObserver) *Slots {
	p := &Slots{size: size, observer: observer}
	if size > 1 {
		p.reserved = max(1, size/10)
	}
	return p
}

// admitsClass reports whether a request of the class could be served now. The caller holds the lock.
func (p *Slots) admitsClass(c class) bool {
	return c == classTick || p.hasRoom(c.slotSide())
}

// hasRoom reports whether a request of this side could get a slot: within the share of the side, and within the total.
// The caller holds the lock.
func (p *Slots) hasRoom(s side) bool {
	return p.slotsInUse[s] < p.size-p.reserved && p.slotsInUse[sideDeletions]+p.slotsInUse[sideOthers] < p.size
}

// nextQueue returns the queue that may hand out a request, and the class of that request. It returns nil if no request
// may be served now. The caller holds the lock.
func (p *Slots) nextQueue() (whose *PriorityQueue, with class) {
	for c := range classCount {
		q := p.firstWaitingQueue(c)
		if q == nil || !p.admitsClass(c) {
			continue
		}
		if p.turnsLeft[c] > 0 {
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
func (p *Slots) firstWaitingQueue(c class) (first *PriorityQueue) {
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
func (p *Slots) acquireSlot(c class) {
	if p.turnsLeft[c] == 0 {
		p.turnsLeft = turnsPerRound
	}
	p.turnsLeft[c]--
	if c != classTick {
		p.slotsInUse[c.slotSide()]++
	}
}

// releaseSlot frees the slot of a request of the class.
func (p *Slots) releaseSlot(c class) {
	if c != classTick {
		p.slotsInUse[c.slotSide()]--
	}
}

// countWaiting changes the number of requests of the class that wait for a turn. Ticks are not counted, because they do
// not wait for slots.
func (p *Slots) countWaiting(c class, change int) {
	if c == classTick {
		return
	}
	p.waitingRequests[c.slotSide()] += change
	if p.observer.OnWaiting != nil {
		p.observer.OnWaiting(change)
	}
}

// wakeNextQueue must be called after every change of the slots or of a queue. It wakes the queue that has the next
// turn, and starts or stops the alarms of stalls. The caller holds the lock.
func (p *Slots) wakeNextQueue() {
	if q, _ := p.nextQueue(); q != nil {
		q.turn.Signal()
	}
	for s := range sideCount {
		p.observeSide(s)
	}
}

// removeQueue removes a queue that was shut down. Its requests were dropped, not served, so it does not report the end
// of a stall.
func (p *Slots) removeQueue(gone *PriorityQueue) {
	p.queues = slices.DeleteFunc(p.queues, func(q *PriorityQueue) bool { return q == gone })
	for s := range sideCount {
		if p.waitingRequests[s] == 0 {
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
	timer    *stallTimer // runs while the side is full and requests wait; nil otherwise
	reported bool
}

// stallTimer is the timer of one possible stall. Its address identifies it, so that a timer that fires late is
// recognized.
type stallTimer struct {
	since time.Time
	timer *time.Timer
}

// observeSide starts or stops the alarm of a side, and reports the end of a stall. The caller holds the lock.
func (p *Slots) observeSide(s side) {
	known := &p.stalls[s]
	full := p.waitingRequests[s] > 0 && !p.hasRoom(s)
	switch {
	case full && known.timer == nil:
		begun := &stallTimer{since: time.Now()}
		begun.timer = time.AfterFunc(StallTimeout, func() { p.confirmStall(s, begun) })
		known.timer = begun
	case !full && known.timer != nil:
		known.timer.timer.Stop()
		known.timer = nil
	}
	// A free slot ends the alarm, but the reported stall only ends when no request waits.
	if known.reported && p.waitingRequests[s] == 0 {
		known.reported = false
		go p.reportStall(Stall{Deletions: s == sideDeletions})
	}
}

// CurrentStalls returns the present stalls, also those shorter than Patience.
func (p *Slots) CurrentStalls() (all []Stall) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for s := range sideCount {
		if p.stalls[s].timer != nil {
			all = append(all, Stall{Deletions: s == sideDeletions, Waiting: p.waitingRequests[s],
				Since: p.stalls[s].timer.since})
		}
	}
	return all
}

// confirmStall reports a stall when its alarm fires, unless a slot became free just before.
func (p *Slots) confirmStall(s side, off *stallTimer) {
	p.mu.Lock()
	known := &p.stalls[s]
	now := known.timer == off && !known.reported
	known.reported = known.reported || now
	found := Stall{Deletions: s == sideDeletions, Waiting: p.waitingRequests[s], Since: off.since}
	p.mu.Unlock()
	if now {
		// Without the lock, because the observer may take long.
		p.reportStall(found)
	}
}

// reportStall calls the observer, if there is one.
func (p *Slots) reportStall(found Stall) {
	if p.observer.OnStall != nil {
		p.observer.OnStall(found)
	}
}
