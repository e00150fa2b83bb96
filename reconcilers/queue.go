package reconcilers

import (
	"strconv"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/source"
)

// queue lets all who wait in it leave before it shuts down.
//
// The priority queue of controller-runtime before 0.25 may be handing out a request at the moment when it is shut down. If the one who
// waits for it leaves because of that, it holds its locks for ever, and a worker that is done with another object never comes back.
// A queue in which nobody waits hands nothing out.
type queue struct {
	priorityqueue.PriorityQueue[source.Request]

	mu      sync.Mutex
	closing bool
	waiting int
	empty   chan struct{} // closed when nobody waits any more while closing
}

func newQueue(inner priorityqueue.PriorityQueue[source.Request]) priorityqueue.PriorityQueue[source.Request] {
	return &queue{PriorityQueue: inner, empty: make(chan struct{})}
}

// GetWithPriority gives the next request. What is taken while the queue closes is for nobody.
func (q *queue) GetWithPriority() (request source.Request, priority int, shutdown bool) {
	if !q.enter() {
		return source.Request{}, 0, true
	}
	request, priority, shutdown = q.PriorityQueue.GetWithPriority()
	if !q.leave() {
		return source.Request{}, 0, true
	}
	return request, priority, shutdown
}

// Get is GetWithPriority for those who do not care.
func (q *queue) Get() (request source.Request, shutdown bool) {
	request, _, shutdown = q.GetWithPriority()
	return request, shutdown
}

// ShutDown gives something to everybody who waits, then ends the queue.
func (q *queue) ShutDown() {
	q.mu.Lock()
	waiting, again := q.waiting, q.closing
	q.closing = true
	q.mu.Unlock()
	if again {
		return
	}
	priority := source.PriorityDeletion
	for i := range waiting {
		q.AddWithOpts(priorityqueue.AddOpts{Priority: &priority}, source.Request{Handler: "leave/" + strconv.Itoa(i)})
	}
	if waiting > 0 {
		<-q.empty
	}
	q.PriorityQueue.ShutDown()
}

// ShuttingDown is true from the beginning of the end.
func (q *queue) ShuttingDown() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.closing
}

// ShutDownWithDrain is the same: what waits in memory only is found again.
func (q *queue) ShutDownWithDrain() { q.ShutDown() }

// enter begins to wait; false if the queue closes.
func (q *queue) enter() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.closing {
		q.waiting++
	}
	return !q.closing
}

// leave ends waiting; false if the queue closes.
func (q *queue) leave() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting--
	if q.closing && q.waiting == 0 {
		close(q.empty)
	}
	return !q.closing
}
