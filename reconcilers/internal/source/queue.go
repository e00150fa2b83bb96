package source

import (
	"container/heap"
	"math"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
)

// PriorityQueue holds the requests of one controller until each has a turn and a place. It holds a request once: a
// request that is added again while it waits is merged, to the earlier time and the more urgent class. One that is
// added while it is being served waits for its release. The queue has no goroutines.
type PriorityQueue struct {
	places  *Places
	limiter workqueue.TypedRateLimiter[Request]

	// The lock of the places guards all the rest.
	began   time.Time // when its clock was at zero
	entries entries
	served  map[Request]class
	ready   [classes]line
	delayed delayed
	timer   *time.Timer
	fires   time.Duration // when the timer fires; zero if it is not set
	getters int           // number of callers that wait in GetWithPriority
	turn    *sync.Cond
	closed  bool
}

var _ priorityqueue.PriorityQueue[Request] = (*PriorityQueue)(nil)

// NewQueue makes a queue for these places. The limiter delays the requests that are added with AddRateLimited.
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

// AddWithOpts adds requests, to be served after a delay.
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

// GetWithPriority waits until a request has its turn and a place. The caller must give the request back with Release.
func (q *PriorityQueue) GetWithPriority() (r Request, priority int, shutdown bool) {
	q.places.mu.Lock()
	defer q.places.mu.Unlock()
	q.getters++
	whose, c := q.places.next()
	for !q.closed && whose != q {
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

// serve hands out the first request of a class.
func (q *PriorityQueue) serve(c class) Request {
	e := q.ready[c].first
	q.unlist(e)
	q.entries.remove(e)
	q.served[e.request] = c
	q.places.take(c)
	q.places.changed()
	return e.request
}

// Release ends the serving of a request: it frees the place, and the same request can be served again. It ignores
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

// Done does nothing: controller-runtime calls it as soon as Reconcile has handed the request over to a worker of its
// own. The worker calls Release.
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

// ShutDownWithDrain is the same as ShutDown.
func (q *PriorityQueue) ShutDownWithDrain() { q.ShutDown() }

// ShuttingDown tells whether the queue is shut down.
func (q *PriorityQueue) ShuttingDown() bool {
	q.places.mu.Lock()
	defer q.places.mu.Unlock()
	return q.closed
}

// Len counts the requests that wait for a turn: neither delayed ones, nor those that are being served at the moment.
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

// NumRequeues gives the limiter's count of the request.
func (q *PriorityQueue) NumRequeues(r Request) int { return q.limiter.NumRequeues(r) }

// forever is as long as a delay can be.
const forever = math.MaxInt64 / 2

// add merges the request with its entry, or makes one. The caller holds the lock, as for all functions below.
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
		q.raise(e, c)
	case after <= 0:
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

// raise moves a request to the end of a more urgent class.
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

// arrive lets a request wait for its turn when its delay is over, unless the same request is being served.
func (q *PriorityQueue) arrive(e *entry) {
	e.at = 0
	if _, busy := q.served[e.request]; !busy {
		q.list(e)
	}
}

func (q *PriorityQueue) list(e *entry) {
	q.places.arrivals++
	e.arrival = q.places.arrivals
	q.ready[e.class].push(e)
	q.places.countWaiting(e.class, 1)
}

func (q *PriorityQueue) unlist(e *entry) {
	q.ready[e.class].remove(e)
	e.arrival = 0
	q.places.countWaiting(e.class, -1)
}

// schedule sets the timer for the first of the delayed requests.
func (q *PriorityQueue) schedule() {
	var first time.Duration
	if len(q.delayed) > 0 {
		first = q.delayed[0].at
	}
	switch {
	case first == q.fires:
		return
	case first == 0:
		q.timer.Stop()
	case q.timer == nil:
		q.timer = time.AfterFunc(first-q.now(), q.endDelays)
	default:
		q.timer.Reset(first - q.now())
	}
	q.fires = first
}

// now is the time on the queue's clock.
func (q *PriorityQueue) now() time.Duration { return time.Since(q.began) }

// endDelays lets the requests whose delay is over wait for their turn. The timer calls it.
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
