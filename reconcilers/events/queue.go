package events

import (
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// The types of events. A listing has none.
const (
	Listed   = ""
	Added    = "ADDED"
	Modified = "MODIFIED"
	Deleted  = "DELETED"
)

// Limit is how many events of one object may wait at once.
const Limit = 256

// Event is one raw event: what happened, and the object as it was then. The object is shared: nobody modifies it.
type Event struct {
	Type   string
	Object *unstructured.Unstructured
}

// Queue keeps the events of the objects of one kind until they are handled, in the order in which they came. Those of
// an object that was replaced under its name come before those of the new one. The zero value is ready to use.
type Queue struct {
	mu      sync.Mutex
	waiting map[types.NamespacedName][]Event
}

// Add puts an event at the end. If too many of the object wait, the oldest one that only tells of a change is dropped:
// true then. What begins and what ends an object is never dropped.
func (q *Queue) Add(e Event) (dropped bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.waiting == nil {
		q.waiting = map[types.NamespacedName][]Event{}
	}
	key := types.NamespacedName{Namespace: e.Object.GetNamespace(), Name: e.Object.GetName()}
	list := append(q.waiting[key], e)
	if len(list) > Limit {
		oldest := slices.IndexFunc(list, func(e Event) bool { return e.Type == Modified })
		if oldest >= 0 {
			list, dropped = slices.Delete(list, oldest, oldest+1), true
		}
	}
	q.waiting[key] = list
	return dropped
}

// Take gives all that wait for one object, and forgets them.
func (q *Queue) Take(key types.NamespacedName) []Event {
	q.mu.Lock()
	defer q.mu.Unlock()
	list := q.waiting[key]
	delete(q.waiting, key)
	return list
}
