package source

import (
	"container/heap"
	"math"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
)

// PriorityQueue holds the requests of one controller until each has a turn and a slot. It holds each request once: a
// request that is added again while it waits is merged, with the earlier time and the more urgent class. A request that
// is added while it is being served waits for its release. The queue runs no goroutines.
type PriorityQueue struct {
	places  *Places
	limiter workqueue.TypedRateLimiter[Request]

	// The lock of the places guards all fields below.
	began   time.Time // zero of the queue's clock
	entries entries
	// served holds the requests that are being served, with the class whose slot they use.
	served  map[Request]class
	ready   [classes]line
	delayed delayed
	timer   *time.Timer
	fires   time.Duration // time at which the timer fires; zero if it is not set
	getters int           // number of callers that wait in GetWithPriority
	turn    *sync.Cond
	closed  bool
}

var _ priorityqueue.PriorityQueue[Request] = (*PriorityQueue)(nil)

// NewQueue creates a queue for these places. The limiter delays the requests that are added with AddRateLimited.
func NewQueue(places *Places, limiter workqueue.TypedRateLimiter[Request]) *PriorityQueue {
	q := &PriorityQueue{
		places: places, limiter: limiter, turn: sync.NewCond(&places.mu),
		began: time.Now(), entries: newEntries(), served: map[Request]class{},
	}
	places.mu.Lock()
	defer places.mu.Unlock()
	places.queues = append(places.queues, q)
	return q
}

// AddWithOpts adds requests after an optional delay. Without a priority, they are retries.
func (q *PriorityQueue) AddWithOpts(o priorityqueue.AddOpts, requests ...Request) {
	q.places.mu.Lock()
	defer q.places.mu.Unlock()
	if q.closed {
		return
	}
	for _, r := range requests {
		after, priority := o.After, 0
		if o.Priority != nil {
			priority = *o.Priority
		}
		// As in controller-runtime, the shorter of both delays applies.
		if o.RateLimited {
			if limited := q.limiter.When(r); after == 0 || limited < after {
				after = limited
			}
		}
		q.add(r, after, classOf(r, priority))
	}
	q.schedule()
	q.places.changed()
}

// GetWithPriority waits until a request has its turn and a slot. The caller must return the request with Release.
func (q *PriorityQueue) GetWithPriority() (r Request, priority int, shutdown bool) {
	q.places.mu.Lock()
	defer q.places.mu.Unlock()
	// Only queues with a waiting worker take part in the choice, see [Places.first].
	q.getters++
	whose, c := q.places.next()
	for !q.closed && whose != q {
		// All queues share one lock, and a signal may reach a queue that is not the next any more: it passes the signal
		// on.
		if whose != nil {
			whose.turn.Signal()
		}
		q.turn.Wait()
		whose, c = q.places.next()
	}
	q.getters--
	if q.closed {
		return Request{}, 0, true
	}
	return q.serve(c), c.priority(), false
}

// serve hands out the first request of a class, and takes a slot for it.
func (q *PriorityQueue) serve(c class) Request {
	e := q.ready[c].first
	q.unlist(e)
	q.entries.remove(e)
	q.served[e.request] = c
	q.places.take(c)
	q.places.changed()
	return e.request
}

// Release ends the serving of a request. It frees the slot, and the same request can be served again. It ignores
// requests that are not being served.
func (q *PriorityQueue) Release(r Request) {
	q.places.mu.Lock()
	defer q.places.mu.Unlock()
	c, ok := q.served[r]
	if !ok {
		return
	}
	delete(q.served, r)
	q.places.release(c)
	if e := q.entries.get(r); e != nil && e.due() {
		q.list(e)
	}
	q.places.changed()
}

// Done does nothing. Controller-runtime calls it when Reconcile returns, which is long before the goroutine that serves
// the request has finished. That goroutine calls Release.
func (q *PriorityQueue) Done(Request) {}

// ShutDown drops all waiting requests, and wakes the callers of Get. Requests that are being served must still be
// released.
func (q *PriorityQueue) ShutDown() {
	q.places.mu.Lock()
	defer q.places.mu.Unlock()
	if q.closed {
		return
	}
	q.closed = true
	q.drop()
	q.places.remove(q)
	q.turn.Broadcast()
}

// ShutDownWithDrain is the same as ShutDown. The controller waits for its passes itself.
func (q *PriorityQueue) ShutDownWithDrain() { q.ShutDown() }

// ShuttingDown reports whether the queue is shut down.
func (q *PriorityQueue) ShuttingDown() bool {
	q.places.mu.Lock()
	defer q.places.mu.Unlock()
	return q.closed
}

// Len returns the number of requests that wait for a turn. It counts neither delayed requests nor those that are being
// served.
func (q *PriorityQueue) Len() (waiting int) {
	q.places.mu.Lock()
	defer q.places.mu.Unlock()
	for _, all := range q.ready {
		waiting += all.length
	}
	return waiting
}

// Add adds a request as a retry.
func (q *PriorityQueue) Add(r Request) { q.AddWithOpts(priorityqueue.AddOpts{}, r) }

// AddAfter adds a request as a retry after a delay.
func (q *PriorityQueue) AddAfter(r Request, after time.Duration) {
	q.AddWithOpts(priorityqueue.AddOpts{After: after}, r)
}

// AddRateLimited adds a request as a retry after the delay of the limiter.
func (q *PriorityQueue) AddRateLimited(r Request) {
	q.AddWithOpts(priorityqueue.AddOpts{RateLimited: true}, r)
}

// Get is GetWithPriority without the priority.
func (q *PriorityQueue) Get() (r Request, shutdown bool) {
	r, _, shutdown = q.GetWithPriority()
	return r, shutdown
}

// Forget resets the limiter's delay of the request.
func (q *PriorityQueue) Forget(r Request) { q.limiter.Forget(r) }

// NumRequeues returns the limiter's count of the request.
func (q *PriorityQueue) NumRequeues(r Request) int { return q.limiter.NumRequeues(r) }

// forever is the longest delay; half of the maximum, so that adding the time of the clock cannot overflow.
const forever = math.MaxInt64 / 2

// add merges the request with its entry, or creates one. The caller holds the lock, as for all functions below.
func (q *PriorityQueue) add(r Request, after time.Duration, c class) {
	at := q.now() + min(after, forever)
	e := q.entries.get(r)
	switch {
	case e == nil && after > 0:
		e = &entry{request: r, class: c, at: at}
		q.entries.add(e)
		heap.Push(&q.delayed, e)
	case e == nil:
		e = &entry{request: r, class: c}
		q.entries.add(e)
		q.arrive(e)
	case e.due():
		// It waits already: only its class can change.
		q.raise(e, c)
	case after <= 0:
		// It is delayed, and not any more: the delay ends now.
		heap.Remove(&q.delayed, int(e.index))
		e.class = min(e.class, c)
		q.arrive(e)
	default:
		e.class = min(e.class, c)
		if at < e.at {
			e.at = at
			heap.Fix(&q.delayed, int(e.index))
		}
	}
}

// raise moves a request to the end of a more urgent class. A less urgent class has no effect.
func (q *PriorityQueue) raise(e *entry, c class) {
	if c >= e.class {
		return
	}
	if !e.listed() {
		e.class = c
		return
	}
	q.unlist(e)
	e.class = c
	q.list(e)
}

// arrive ends the delay of a request. It waits for its turn, or for the release of the same request if that is being
// served.
func (q *PriorityQueue) arrive(e *entry) {
	e.at = 0
	if _, busy := q.served[e.request]; !busy {
		q.list(e)
	}
}

// list appends an entry to the line of its class.
func (q *PriorityQueue) list(e *entry) {
	q.places.arrivals++
	e.arrival = q.places.arrivals
	q.ready[e.class].push(e)
	q.places.countWaiting(e.class, 1)
}

// unlist removes an entry from the line of its class.
func (q *PriorityQueue) unlist(e *entry) {
	q.ready[e.class].remove(e)
	e.arrival = 0
	q.places.countWaiting(e.class, -1)
}

// schedule sets the timer to the end of the earliest delay.
func (q *PriorityQueue) schedule() {
	var first time.Duration
	if len(q.delayed) > 0 {
		first = q.delayed[0].at
	}
	switch {
	case first == q.fires:
		return
	case first == 0:
		// No request is delayed any more.
		q.timer.Stop()
	case q.timer == nil:
		q.timer = time.AfterFunc(first-q.now(), q.endDelays)
	default:
		q.timer.Reset(first - q.now())
	}
	q.fires = first
}

// now returns the time on the queue's clock. Durations take less space in entries than time.Time.
func (q *PriorityQueue) now() time.Duration { return time.Since(q.began) }

// endDelays ends all delays that are over. The timer calls it.
func (q *PriorityQueue) endDelays() {
	q.places.mu.Lock()
	defer q.places.mu.Unlock()
	q.fires = 0
	if q.closed {
		return
	}
	now := q.now()
	for len(q.delayed) > 0 && q.delayed[0].at <= now {
		e, _ := heap.Pop(&q.delayed).(*entry)
		q.arrive(e)
	}
	q.schedule()
	q.places.changed()
}

// drop removes all waiting requests.
func (q *PriorityQueue) drop() {
	for c, all := range q.ready {
		if all.length > 0 {
			q.places.countWaiting(class(c), -all.length)
		}
		q.ready[c] = line{}
	}
	q.entries.clear()
	q.delayed = nil
	if q.timer != nil {
		q.timer.Stop()
	}
}
