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
	slots   *Slots
	limiter workqueue.TypedRateLimiter[Request]

	// The lock of the places guards all fields below.
	clockStart time.Time // zero of the queue's clock
	entries    entries
	// processing holds the requests that are being served, with the class whose slot they use.
	processing   map[Request]class
	ready        [classCount]line
	delayed      delayedHeap
	timer        *time.Timer
	timerFiresAt time.Duration // time at which the timer fires; zero if it is not set
	getters      int           // number of callers that wait in GetWithPriority
	turn         *sync.Cond
	closed       bool
}

var _ priorityqueue.PriorityQueue[Request] = (*PriorityQueue)(nil)

// NewQueue creates a queue for these places. The limiter delays the requests that are added with AddRateLimited.
func NewQueue(places *Slots, limiter workqueue.TypedRateLimiter[Request]) *PriorityQueue {
	q := &PriorityQueue{
		slots: places, limiter: limiter, turn: sync.NewCond(&places.mu),
		clockStart: time.Now(), entries: newEntries(), processing: map[Request]class{},
	}
	places.mu.Lock()
	defer places.mu.Unlock()
	places.queues = append(places.queues, q)
	return q
}

// AddWithOpts adds requests after an optional delay. Without a priority, they are retries.
func (q *PriorityQueue) AddWithOpts(o priorityqueue.AddOpts, requests ...Request) {
	q.slots.mu.Lock()
	defer q.slots.mu.Unlock()
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
		q.mergeRequest(r, after, classOf(r, priority))
	}
	q.resetTimer()
	q.slots.wakeNextQueue()
}

// GetWithPriority waits until a request has its turn and a slot. The caller must return the request with Release.
func (q *PriorityQueue) GetWithPriority() (r Request, priority int, shutdown bool) {
	q.slots.mu.Lock()
	defer q.slots.mu.Unlock()
	// Only queues with a waiting worker take part in the choice, see [Slots.firstWaitingQueue].
	q.getters++
	whose, c := q.slots.nextQueue()
	for !q.closed && whose != q {
		// All queues share one lock, and a signal may reach a queue that is not the next any more: it passes the signal
		// on.
		if whose != nil {
			whose.turn.Signal()
		}
		q.turn.Wait()
		whose, c = q.slots.nextQueue()
	}
	q.getters--
	if q.closed {
		return Request{}, 0, true
	}
	return q.serveFirst(c), c.requestPriority(), false
}

// serveFirst hands out the first request of a class, and takes a slot for it.
func (q *PriorityQueue) serveFirst(c class) Request {
	e := q.ready[c].first
	q.dequeueEntry(e)
	q.entries.removeEntry(e)
	q.processing[e.request] = c
	q.slots.acquireSlot(c)
	q.slots.wakeNextQueue()
	return e.request
}

// Release ends the serving of a request. It frees the slot, and the same request can be served again. It ignores
// requests that are not being served.
func (q *PriorityQueue) Release(r Request) {
	q.slots.mu.Lock()
	defer q.slots.mu.Unlock()
	c, ok := q.processing[r]
	if !ok {
		return
	}
	delete(q.processing, r)
	q.slots.releaseSlot(c)
	if e := q.entries.findEntry(r); e != nil && e.isDue() {
		q.enqueueEntry(e)
	}
	q.slots.wakeNextQueue()
}

// Done does nothing. Controller-runtime calls it when Reconcile returns, which is long before the goroutine that serves
// the request has finished. That goroutine calls Release.
func (q *PriorityQueue) Done(Request) {}

// ShutDown drops all waiting requests, and wakes the callers of Get. Requests that are being served must still be
// released.
func (q *PriorityQueue) ShutDown() {
	q.slots.mu.Lock()
	defer q.slots.mu.Unlock()
	if q.closed {
		return
	}
	q.closed = true
	q.dropWaiting()
	q.slots.removeQueue(q)
	q.turn.Broadcast()
}

// ShutDownWithDrain is the same as ShutDown. The controller waits for its passes itself.
func (q *PriorityQueue) ShutDownWithDrain() { q.ShutDown() }

// ShuttingDown reports whether the queue is shut down.
func (q *PriorityQueue) ShuttingDown() bool {
	q.slots.mu.Lock()
	defer q.slots.mu.Unlock()
	return q.closed
}

// Len returns the number of requests that wait for a turn. It counts neither delayed requests nor those that are being
// served.
func (q *PriorityQueue) Len() (waiting int) {
	q.slots.mu.Lock()
	defer q.slots.mu.Unlock()
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

// maxDelay is the longest delay; half of the maximum, so that adding the time of the clock cannot overflow.
const maxDelay = math.MaxInt64 / 2

// mergeRequest merges the request with its entry, or creates one. The caller holds the lock, as for all functions
// below.
func (q *PriorityQueue) mergeRequest(r Request, after time.Duration, c class) {
	at := q.clockTime() + min(after, maxDelay)
	e := q.entries.findEntry(r)
	switch {
	case e == nil && after > 0:
		e = &entry{request: r, class: c, dueAt: at}
		q.entries.addEntry(e)
		heap.Push(&q.delayed, e)
	case e == nil:
		e = &entry{request: r, class: c}
		q.entries.addEntry(e)
		q.becomeReady(e)
	case e.isDue():
		// It waits already: only its class can change.
		q.raiseClass(e, c)
	case after <= 0:
		// It is delayed, and not any more: the delay ends now.
		heap.Remove(&q.delayed, int(e.index))
		e.class = min(e.class, c)
		q.becomeReady(e)
	default:
		e.class = min(e.class, c)
		if at < e.dueAt {
			e.dueAt = at
			heap.Fix(&q.delayed, int(e.index))
		}
	}
}

// raiseClass moves a request to the end of a more urgent class. A less urgent class has no effect.
func (q *PriorityQueue) raiseClass(e *entry, c class) {
	if c >= e.class {
		return
	}
	if !e.isListed() {
		e.class = c
		return
	}
	q.dequeueEntry(e)
	e.class = c
	q.enqueueEntry(e)
}

// becomeReady ends the delay of a request. It waits for its turn, or for the release of the same request if that is
// being served.
func (q *PriorityQueue) becomeReady(e *entry) {
	e.dueAt = 0
	if _, busy := q.processing[e.request]; !busy {
		q.enqueueEntry(e)
	}
}

// enqueueEntry appends an entry to the line of its class.
func (q *PriorityQueue) enqueueEntry(e *entry) {
	q.slots.arrivals++
	e.arrival = q.slots.arrivals
	q.ready[e.class].appendEntry(e)
	q.slots.countWaiting(e.class, 1)
}

// dequeueEntry removes an entry from the line of its class.
func (q *PriorityQueue) dequeueEntry(e *entry) {
	q.ready[e.class].unlinkEntry(e)
	e.arrival = 0
	q.slots.countWaiting(e.class, -1)
}

// resetTimer sets the timer to the end of the earliest delay.
func (q *PriorityQueue) resetTimer() {
	var first time.Duration
	if len(q.delayed) > 0 {
		first = q.delayed[0].dueAt
	}
	switch {
	case first == q.timerFiresAt:
		return
	case first == 0:
		// No request is delayed any more.
		q.timer.Stop()
	case q.timer == nil:
		q.timer = time.AfterFunc(first-q.clockTime(), q.endDelays)
	default:
		q.timer.Reset(first - q.clockTime())
	}
	q.timerFiresAt = first
}

// clockTime returns the time on the queue's clock. Durations take less space in entries than time.Time.
func (q *PriorityQueue) clockTime() time.Duration { return time.Since(q.clockStart) }

// endDelays ends all delays that are over. The timer calls it.
func (q *PriorityQueue) endDelays() {
	q.slots.mu.Lock()
	defer q.slots.mu.Unlock()
	q.timerFiresAt = 0
	if q.closed {
		return
	}
	now := q.clockTime()
	for len(q.delayed) > 0 && q.delayed[0].dueAt <= now {
		e, _ := heap.Pop(&q.delayed).(*entry)
		q.becomeReady(e)
	}
	q.resetTimer()
	q.slots.wakeNextQueue()
}

// dropWaiting removes all waiting requests.
func (q *PriorityQueue) dropWaiting() {
	for c, all := range q.ready {
		q.slots.countWaiting(class(c), -all.length)
		q.ready[c] = line{}
	}
	q.entries.dropAllEntries()
	q.delayed = nil
	if q.timer != nil {
		q.timer.Stop()
	}
}
