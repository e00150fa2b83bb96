package source

import (
	"slices"
	"sync"
	"time"
)

// Patience is how long the requests of one side may wait while none of them gets a place: after that, Places reports a
// stall.
const Patience = 10 * time.Second

// class groups requests by their priority, the most urgent class first.
type class int8

const (
	tick class = iota
	deletion
	change
	retry
	resume
	classes
)

// shares are the turns of each class in one round. A round ends when no waiting class has turns left. So urgent classes
// go first, but the others always make progress. Promoting requests by age instead would put the whole first listing,
// which waits since the start, before every edit made now.
var shares = [classes]int{tick: 16, deletion: 8, change: 4, retry: 2, resume: 1}

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

func (c class) priority() int {
	return [classes]int{
		PriorityTimer, PriorityDeletion, PriorityChange, PriorityRetry,
		PriorityResume,
	}[c]
}

// side is one of two groups of classes, neither of which can take all places: deletions, and the others.
type side int

const (
	others side = iota
	deletions
	sides
)

func (c class) side() side {
	if c == deletion {
		return deletions
	}
	return others
}

// Places limit how many requests for the objects of one resource are served at once, in all namespaces together. A
// tenth of them, and at least one, is reserved for deletions, and as many for other requests; a single place is
// reserved for neither. Ticks of timers need no place, as package background runs them. The queues made with the same
// Places share its lock.
type Places struct {
	size, reserved int
	observer       Observer

	mu       sync.Mutex
	queues   []*PriorityQueue
	taken    [sides]int
	waiting  [sides]int
	left     [classes]int // turns left in this round
	arrivals uint64       // numbers requests in the order in which they became ready
	stalls   [sides]stallState
}

// Observer holds the callbacks of Places, each of which may be nil.
type Observer struct {
	// Waiting reports by how much the number of requests that wait for their turn has changed. Places calls it with
	// its lock held, so it must be quick.
	Waiting func(change int)
	// Stalled reports once that requests wait, and none of them got a place for Patience; and once that none waits any
	// more. Places calls it on a goroutine of its own.
	Stalled func(Stall)
}

// NewPlaces makes as many places as size says, which must be positive.
func NewPlaces(size int, observer Observer) *Places {
	p := &Places{size: size, observer: observer}
	if size > 1 {
		p.reserved = max(1, size/10)
	}
	return p
}

// admits tells whether a request of the class could be served now. The caller holds the lock.
func (p *Places) admits(c class) bool {
	return c == tick || p.hasRoom(c.side())
}

func (p *Places) hasRoom(s side) bool {
	return p.taken[s] < p.size-p.reserved && p.taken[deletions]+p.taken[others] < p.size
}

// next gives the queue that may hand out a request, and the class of that request; a nil queue if none may. The caller
// holds the lock.
func (p *Places) next() (whose *PriorityQueue, with class) {
	for c := range classes {
		q := p.first(c)
		if q == nil || !p.admits(c) {
			continue
		}
		if p.left[c] > 0 {
			return q, c
		}
		if whose == nil {
			whose, with = q, c // unless a less urgent class has turns left in this round
		}
	}
	return whose, with
}

// first gives the queue with the oldest ready request of the class, among the queues that a worker waits at.
func (p *Places) first(c class) (first *PriorityQueue) {
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

// take uses up a turn of the class and, unless it is for ticks, a place. A class without turns begins a new round.
func (p *Places) take(c class) {
	if p.left[c] == 0 {
		p.left = shares
	}
	p.left[c]--
	if c != tick {
		p.taken[c.side()]++
	}
}

// release frees the place of a request of the class.
func (p *Places) release(c class) {
	if c != tick {
		p.taken[c.side()]--
	}
}

// countWaiting changes the number of requests of the class that wait for a turn.
func (p *Places) countWaiting(c class, change int) {
	if c == tick {
		return
	}
	p.waiting[c.side()] += change
	if p.observer.Waiting != nil {
		p.observer.Waiting(change)
	}
}

// changed follows every change of the places or of a queue: it wakes the queue whose turn it is now, and begins or ends
// stalls. The caller holds the lock.
func (p *Places) changed() {
	if q, _ := p.next(); q != nil {
		q.turn.Signal()
	}
	for s := range sides {
		p.observe(s)
	}
}

// remove takes out a queue that is shut down. It was dropped, not served: so Places reports no end of a stall.
func (p *Places) remove(gone *PriorityQueue) {
	p.queues = slices.DeleteFunc(p.queues, func(q *PriorityQueue) bool { return q == gone })
	for s := range sides {
		if p.waiting[s] == 0 {
			p.stalls[s].reported = false
		}
	}
	p.changed()
}

// Stall reports requests that wait because all places open to them are taken, and none becomes free.
type Stall struct {
	// Deletions is true if requests of objects that are being deleted wait, and false if others do.
	Deletions bool
	// Waiting is the number of requests that wait; zero when the stall is over.
	Waiting int
	// Since is when the last place was taken.
	Since time.Time
}

// stallState tracks whether one side is stalled.
type stallState struct {
	alarm    *alarm // runs while the side is full, and requests wait
	reported bool
}

// alarm is the time of one stall.
type alarm struct {
	since time.Time
	timer *time.Timer
}

// observe starts or stops the alarm of a side, and reports the end of a stall. The caller holds the lock.
func (p *Places) observe(s side) {
	known := &p.stalls[s]
	full := p.waiting[s] > 0 && !p.hasRoom(s)
	switch {
	case full && known.alarm == nil:
		begun := &alarm{since: time.Now()}
		begun.timer = time.AfterFunc(Patience, func() { p.stalled(s, begun) })
		known.alarm = begun
	case !full && known.alarm != nil:
		known.alarm.timer.Stop()
		known.alarm = nil
	}
	if known.reported && p.waiting[s] == 0 {
		known.reported = false
		go p.report(Stall{Deletions: s == deletions})
	}
}

// Stalls gives the stalls of now, also those of less than Patience.
func (p *Places) Stalls() (all []Stall) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for s := range sides {
		if p.stalls[s].alarm != nil {
			all = append(all, Stall{Deletions: s == deletions, Waiting: p.waiting[s], Since: p.stalls[s].alarm.since})
		}
	}
	return all
}

// stalled reports a stall when the alarm goes off, unless a place became free just before.
func (p *Places) stalled(s side, off *alarm) {
	p.mu.Lock()
	known := &p.stalls[s]
	now := known.alarm == off && !known.reported
	known.reported = known.reported || now
	found := Stall{Deletions: s == deletions, Waiting: p.waiting[s], Since: off.since}
	p.mu.Unlock()
	if now {
		p.report(found)
	}
}

func (p *Places) report(found Stall) {
	if p.observer.Stalled != nil {
		p.observer.Stalled(found)
	}
}
