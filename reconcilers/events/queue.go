package events

import (
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-runtime/kopf-runtime/internal/compact"
)

// The types of events, as in Kopf. Objects of the first listing have the empty type.
const (
	Listed   = ""
	Added    = "ADDED"
	Modified = "MODIFIED"
	Deleted  = "DELETED"
)

// MaxPendingEvents is the number of events of one object that may wait. It bounds the memory while a handler is slow.
const MaxPendingEvents = 256

// RawEvent is one raw event: its type, and the object at that time.
type RawEvent struct {
	Type   string
	Object *compact.CachedObject
}

// Queue stores the events of the objects of one resource until a pass delivers them, in the order of arrival. If
// another object of the same name replaces an object, the events of the old one come first. The zero value is ready to
// use.
type Queue struct {
	mu            sync.Mutex
	pendingEvents map[types.NamespacedName][]RawEvent
}

// Add appends an event. If more than Limit events of the object are waiting then, it drops the oldest one of type
// MODIFIED and returns true. It never drops other events, because later events cannot replace them.
func (q *Queue) Add(e RawEvent) (dropped bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.pendingEvents == nil {
		q.pendingEvents = map[types.NamespacedName][]RawEvent{}
	}
	key := e.Object.ObjectKey()
	list := append(q.pendingEvents[key], e)
	// Only events of type MODIFIED are superseded by later ones.
	if len(list) > MaxPendingEvents {
		oldest := slices.IndexFunc(list, func(e RawEvent) bool { return e.Type == Modified })
		if oldest >= 0 {
			list, dropped = slices.Delete(list, oldest, oldest+1), true
		}
	}
	q.pendingEvents[key] = list
	return dropped
}

// TakeAll removes and returns all waiting events of one object.
func (q *Queue) TakeAll(key types.NamespacedName) []RawEvent {
	q.mu.Lock()
	defer q.mu.Unlock()
	list := q.pendingEvents[key]
	// Keep no empty lists: objects come and go.
	delete(q.pendingEvents, key)
	return list
}
