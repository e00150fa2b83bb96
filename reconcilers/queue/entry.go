package queue

import (
	"container/heap"
	"container/list"
	"time"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/source"
)

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

// entry is a request that waits: for its time, then for its turn. In between, it waits for the end of its own serving.
type entry struct {
	request source.Request
	class   class
	at      time.Time     // its time, if that has not come yet
	index   int           // among the delayed ones
	arrival uint64        // when its turn began to be waited for
	listed  *list.Element // while its turn is waited for
}

func (e *entry) due() bool { return e.at.IsZero() }

// delayed is a heap by time.
type delayed []*entry

var _ heap.Interface = (*delayed)(nil)

func (d delayed) Len() int           { return len(d) }
func (d delayed) Less(i, j int) bool { return d[i].at.Before(d[j].at) }
func (d delayed) Swap(i, j int)      { d[i], d[j] = d[j], d[i]; d[i].index, d[j].index = i, j }

// Push is for package heap.
func (d *delayed) Push(x any) {
	e, _ := x.(*entry)
	e.index = len(*d)
	*d = append(*d, e)
}

// Pop is for package heap.
func (d *delayed) Pop() any {
	last := len(*d) - 1
	e := (*d)[last]
	(*d)[last] = nil
	*d = (*d)[:last]
	return e
}

// add merges the request with what is there of it. The lock is held, as in all that follows.
func (q *Queue) add(r source.Request, after time.Duration, c class) {
	at := time.Now().Add(after)
	e := q.entries[r]
	switch {
	case e == nil && after > 0:
		e = &entry{request: r, class: c, at: at}
		q.entries[r] = e
		heap.Push(&q.delayed, e)
	case e == nil:
		e = &entry{request: r, class: c}
		q.entries[r] = e
		q.arrive(e)
	case e.due():
		q.raise(e, c)
	case after <= 0:
		heap.Remove(&q.delayed, e.index)
		e.class = min(e.class, c)
		q.arrive(e)
	default:
		e.class = min(e.class, c)
		if at.Before(e.at) {
			e.at = at
			heap.Fix(&q.delayed, e.index)
		}
	}
}

// raise lets a request wait for its turn in a more urgent class, behind those that are there.
func (q *Queue) raise(e *entry, c class) {
	if c >= e.class {
		return
	}
	if e.listed == nil {
		e.class = c
		return
	}
	q.unlist(e)
	e.class = c
	q.list(e)
}

// arrive is when the time of a request has come.
func (q *Queue) arrive(e *entry) {
	e.at = time.Time{}
	if _, busy := q.served[e.request]; !busy {
		q.list(e)
	}
}

func (q *Queue) list(e *entry) {
	q.places.arrivals++
	e.arrival = q.places.arrivals
	e.listed = q.ready[e.class].PushBack(e)
	q.places.waits(e.class, 1)
}

func (q *Queue) unlist(e *entry) {
	q.ready[e.class].Remove(e.listed)
	e.listed = nil
	q.places.waits(e.class, -1)
}

// head is the first that waits for a turn of the class; there must be one.
func (q *Queue) head(c class) *entry {
	e, _ := q.ready[c].Front().Value.(*entry)
	return e
}

// schedule sets the timer for the first of the delayed requests.
func (q *Queue) schedule() {
	var first time.Time
	if len(q.delayed) > 0 {
		first = q.delayed[0].at
	}
	switch {
	case first.Equal(q.fires):
		return
	case first.IsZero():
		q.timer.Stop()
	case q.timer == nil:
		q.timer = time.AfterFunc(time.Until(first), q.ripen)
	default:
		q.timer.Reset(time.Until(first))
	}
	q.fires = first
}

// ripen is when the time of the first delayed requests has come.
func (q *Queue) ripen() {
	q.places.mu.Lock()
	defer q.places.mu.Unlock()
	q.fires = time.Time{}
	if q.closed {
		return
	}
	now := time.Now()
	for len(q.delayed) > 0 && !q.delayed[0].at.After(now) {
		e, _ := heap.Pop(&q.delayed).(*entry)
		q.arrive(e)
	}
	q.schedule()
	q.places.changed()
}

// drop forgets all that waits.
func (q *Queue) drop() {
	for c, all := range q.ready {
		if all.Len() > 0 {
			q.places.waits(class(c), -all.Len())
		}
		all.Init()
	}
	clear(q.entries)
	q.delayed = nil
	if q.timer != nil {
		q.timer.Stop()
	}
}
