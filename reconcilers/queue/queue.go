package queue

import (
	"container/list"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/source"
)

// Queue holds the requests of one controller until there are a turn and a place for them. A request is in it once: what
// is added while it waits is merged with it, to the earlier time and the more urgent class; what is added while it is
// being served waits until then. It has no goroutines.
type Queue struct {
	places  *Places
	limiter workqueue.TypedRateLimiter[source.Request]

	// All the rest is guarded by the lock of the places.
	entries map[source.Request]*entry
	served  map[source.Request]class
	ready   [classes]*list.List // of *entry, in the order of arrival
	delayed delayed
	timer   *time.Timer
	fires   time.Time // when the timer does; zero if it does not
	asking  int       // how many wait in Get
	turn    *sync.Cond
	closed  bool
}

var _ priorityqueue.PriorityQueue[source.Request] = (*Queue)(nil)

// New makes a queue for these places. The limiter is for requests that are added with AddRateLimited.
func New(places *Places, limiter workqueue.TypedRateLimiter[source.Request]) *Queue {
	q := &Queue{
		places: places, limiter: limiter, turn: sync.NewCond(&places.mu),
		entries: map[source.Request]*entry{}, served: map[source.Request]class{},
	}
	for c := range q.ready {
		q.ready[c] = list.New()
	}
	places.mu.Lock()
	defer places.mu.Unlock()
	places.queues = append(places.queues, q)
	return q
}

// AddWithOpts adds requests, to be served after a delay.
func (q *Queue) AddWithOpts(o priorityqueue.AddOpts, requests ...source.Request) {
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

// GetWithPriority waits for a request whose turn it is, and for a place for it. Both are given back with Release.
func (q *Queue) GetWithPriority() (r source.Request, priority int, shutdown bool) {
	q.places.mu.Lock()
	defer q.places.mu.Unlock()
	q.asking++
	whose, c := q.places.next()
	for !q.closed && whose != q {
		if whose != nil {
			whose.turn.Signal()
		}
		q.turn.Wait()
		whose, c = q.places.next()
	}
	q.asking--
	if q.closed {
		return source.Request{}, 0, true
	}
	return q.serve(c), c.priority(), false
}

// serve hands out the first request of a class.
func (q *Queue) serve(c class) source.Request {
	e := q.head(c)
	q.unlist(e)
	delete(q.entries, e.request)
	q.served[e.request] = c
	q.places.take(c)
	q.places.changed()
	return e.request
}

// Release is when a request has been served.
func (q *Queue) Release(r source.Request) {
	q.places.mu.Lock()
	defer q.places.mu.Unlock()
	c, ok := q.served[r]
	if !ok {
		return
	}
	delete(q.served, r)
	q.places.release(c)
	if e := q.entries[r]; e != nil && e.due() {
		q.list(e)
	}
	q.places.changed()
}

// Done does nothing: the controller hands requests over to those who serve them, and has not served them itself. See
// Release.
func (q *Queue) Done(source.Request) {}

// ShutDown drops all that waits, and gives nothing out any more. What is being served is still to be released.
func (q *Queue) ShutDown() {
	q.places.mu.Lock()
	defer q.places.mu.Unlock()
	if q.closed {
		return
	}
	q.closed = true
	q.drop()
	q.places.leave(q)
	q.turn.Broadcast()
}

// ShutDownWithDrain is the same as ShutDown.
func (q *Queue) ShutDownWithDrain() { q.ShutDown() }

// ShuttingDown tells whether the queue is shut down.
func (q *Queue) ShuttingDown() bool {
	q.places.mu.Lock()
	defer q.places.mu.Unlock()
	return q.closed
}

// Len is how many requests wait for a turn: not those that wait for their time, or for themselves.
func (q *Queue) Len() (waiting int) {
	q.places.mu.Lock()
	defer q.places.mu.Unlock()
	for _, all := range q.ready {
		waiting += all.Len()
	}
	return waiting
}

// Add adds a request as a retry.
func (q *Queue) Add(r source.Request) { q.AddWithOpts(priorityqueue.AddOpts{}, r) }

// AddAfter adds a request as a retry after a delay.
func (q *Queue) AddAfter(r source.Request, after time.Duration) {
	q.AddWithOpts(priorityqueue.AddOpts{After: after}, r)
}

// AddRateLimited adds a request as a retry after the delay of the limiter.
func (q *Queue) AddRateLimited(r source.Request) {
	q.AddWithOpts(priorityqueue.AddOpts{RateLimited: true}, r)
}

// Get is GetWithPriority without the priority.
func (q *Queue) Get() (r source.Request, shutdown bool) {
	r, _, shutdown = q.GetWithPriority()
	return r, shutdown
}

// Forget is that of the limiter.
func (q *Queue) Forget(r source.Request) { q.limiter.Forget(r) }

// NumRequeues is that of the limiter.
func (q *Queue) NumRequeues(r source.Request) int { return q.limiter.NumRequeues(r) }
