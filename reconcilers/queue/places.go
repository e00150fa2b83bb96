package queue

import (
	"slices"
	"sync"
	"time"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/source"
)

// Patience is how long requests wait for a place, with none of them getting one, before that is told.
const Patience = 10 * time.Second

// class is what a request is for, by its priority. The more urgent ones come first.
type class int

const (
	tick class = iota
	deletion
	change
	retry
	resume
	classes
)

// shares are how many turns each class gets in a round, if it has that much to do. A round is over when nobody who
// waits has turns left. So the urgent ones go first, but the others always go on: with an age at which they go first
// instead, a long listing that waits since the start would come before every edit of now.
var shares = [classes]int{tick: 16, deletion: 8, change: 4, retry: 2, resume: 1}

func classOf(r source.Request, priority int) class {
	switch {
	case r.Handler != "":
		return tick
	case priority >= source.PriorityDeletion:
		return deletion
	case priority >= source.PriorityChange:
		return change
	case priority >= source.PriorityRetry:
		return retry
	default:
		return resume
	}
}

func (c class) priority() int {
	return [classes]int{
		source.PriorityTimer, source.PriorityDeletion, source.PriorityChange, source.PriorityRetry,
		source.PriorityResume,
	}[c]
}

// side is one of the two who cannot take each other's last places.
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

// Places are where the requests of one kind are served: as many at once as there are places, in all namespaces. One in
// ten, and at least one, is kept for deletions, and as many for the rest; with a single place, nothing is kept. Ticks
// need none, as they run elsewhere. Places serves the queues made with it, and is the lock of all of them.
type Places struct {
	size, kept int
	observer   Observer

	mu       sync.Mutex
	queues   []*Queue
	taken    [sides]int
	waiting  [sides]int
	left     [classes]int // turns of this round
	arrivals uint64
	stalls   [sides]stall
}

// Observer is told what becomes of the places. Its functions may be nil.
type Observer struct {
	// Waiting is told how many more, or fewer, requests wait for their turn. It must be quick.
	Waiting func(more int)
	// Stalled is told once that requests have been waiting without any of them getting a place for Patience, and once
	// that none waits any more. It has a goroutine of its own.
	Stalled func(Stall)
}

// NewPlaces makes as many places. There must be one at least.
func NewPlaces(size int, observer Observer) *Places {
	p := &Places{size: size, observer: observer}
	if size > 1 {
		p.kept = max(1, size/10)
	}
	return p
}

// admits tells whether there is a place. The lock is held.
func (p *Places) admits(c class) bool {
	return c == tick || p.room(c.side())
}

func (p *Places) room(s side) bool {
	return p.taken[s] < p.size-p.kept && p.taken[deletions]+p.taken[others] < p.size
}

// next is the queue whose turn it is, and with what; nil if nobody's. The lock is held.
func (p *Places) next() (whose *Queue, with class) {
	for c := range classes {
		q := p.first(c)
		if q == nil || !p.admits(c) {
			continue
		}
		if p.left[c] > 0 {
			return q, c
		}
		if whose == nil {
			whose, with = q, c // if the round is over
		}
	}
	return whose, with
}

// first is the queue in which a request of the class came first, among those that are asked for one.
func (p *Places) first(c class) (first *Queue) {
	for _, q := range p.queues {
		if q.asking == 0 || q.ready[c].Len() == 0 {
			continue
		}
		if first == nil || q.head(c).arrival < first.head(c).arrival {
			first = q
		}
	}
	return first
}

// take gives a place and a turn away.
func (p *Places) take(c class) {
	if p.left[c] == 0 {
		p.left = shares
	}
	p.left[c]--
	if c != tick {
		p.taken[c.side()]++
	}
}

// release takes a place back.
func (p *Places) release(c class) {
	if c != tick {
		p.taken[c.side()]--
	}
}

// waits counts those that wait for a turn.
func (p *Places) waits(c class, more int) {
	if c == tick {
		return
	}
	p.waiting[c.side()] += more
	if p.observer.Waiting != nil {
		p.observer.Waiting(more)
	}
}

// changed is after every change: whose turn it is may be somebody else's now. The lock is held.
func (p *Places) changed() {
	if q, _ := p.next(); q != nil {
		q.turn.Signal()
	}
	for s := range sides {
		p.observe(s)
	}
}

// leave is when a queue is shut down. What waited in it is dropped, so that is no relief worth telling.
func (p *Places) leave(gone *Queue) {
	p.queues = slices.DeleteFunc(p.queues, func(q *Queue) bool { return q == gone })
	for s := range sides {
		if p.waiting[s] == 0 {
			p.stalls[s].told = false
		}
	}
	p.changed()
}

// Stall is that requests wait because all places for them are taken, and nobody leaves.
type Stall struct {
	// Deletions is true if it is those that wait, and false for all the rest.
	Deletions bool
	// Waiting is how many do; none when it is over.
	Waiting int
	// Since is when the last place was taken.
	Since time.Time
}

// stall is what is known of one side.
type stall struct {
	alarm  *time.Timer // while it is full, and somebody waits
	number int         // of the alarm
	since  time.Time
	told   bool
}

// observe is after every change. The lock is held.
func (p *Places) observe(s side) {
	known := &p.stalls[s]
	full := p.waiting[s] > 0 && !p.room(s)
	switch {
	case full && known.alarm == nil:
		known.number++
		number := known.number
		known.since = time.Now()
		known.alarm = time.AfterFunc(Patience, func() { p.stalled(s, number) })
	case !full && known.alarm != nil:
		known.alarm.Stop()
		known.alarm = nil
	}
	if known.told && p.waiting[s] == 0 {
		known.told = false
		go p.tell(Stall{Deletions: s == deletions})
	}
}

// stalled is when the alarm goes off.
func (p *Places) stalled(s side, number int) {
	p.mu.Lock()
	known := &p.stalls[s]
	now := known.alarm != nil && known.number == number && !known.told // a place may have been left at the last moment
	known.told = known.told || now
	found := Stall{Deletions: s == deletions, Waiting: p.waiting[s], Since: known.since}
	p.mu.Unlock()
	if now {
		p.tell(found)
	}
}

func (p *Places) tell(found Stall) {
	if p.observer.Stalled != nil {
		p.observer.Stalled(found)
	}
}
