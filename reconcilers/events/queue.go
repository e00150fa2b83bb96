package events

import (
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/compact"
)

// The types of events. Objects of the first listing have the empty one.
const (
	Listed   = ""
	Added    = "ADDED"
	Modified = "MODIFIED"
	Deleted  = "DELETED"
)

// Limit is how many events of one object may wait at once.
const Limit = 256

// Event is one raw event: its type, and the object as it was then.
type Event struct {
	Type   string
	Object *compact.Object
}

// Queue keeps the events of the objects of one resource until a pass delivers them, in the order of their arrival. If
// an object was replaced by another one of its name, the events of the old object come first. The zero value is ready
// to use.
type Queue struct {
	mu      sync.Mutex
	waiting map[types.NamespacedName][]Event
}

// Add appends an event. If more than Limit events of the object wait then, Add drops the oldest one of type MODIFIED,
// and returns true; it never drops events of other types.
func (q *Queue) Add(e Event) (dropped bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.waiting == nil {
		q.waiting = map[types.NamespacedName][]Event{}
	}
	key := e.Object.Key()
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

// Take removes and returns all waiting events of one object.
func (q *Queue) Take(key types.NamespacedName) []Event {
	q.mu.Lock()
	defer q.mu.Unlock()
	list := q.waiting[key]
	delete(q.waiting, key)
	return list
}
