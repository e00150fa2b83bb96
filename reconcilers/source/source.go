package source

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
)

// Request asks for one look at one object: at its changes, or, with a handler's id, at a due tick of its timer.
type Request struct {
	types.NamespacedName
	// Handler is the id of the timer; empty means that the object changed.
	Handler string
}

// The priorities of requests. Higher ones come first; within one, the order is that of arrival.
const (
	PriorityDeletion = 200
	PriorityChange   = 100
	PriorityRetry    = 0
	PriorityResume   = -100
	PriorityTimer    = -200
)

// Object is the raw object, as cached: it is shared, and nobody modifies it.
type Object = *unstructured.Unstructured

// Queue is where the requests go.
type Queue = workqueue.TypedRateLimitingInterface[Request]

// Watcher is told what must be known before a request is made.
type Watcher interface {
	// Listed is called for every object of the first listing.
	Listed(obj Object)
	// Deleted is called with the last known state of an object that is no more.
	Deleted(obj Object)
	// Seen is called for every event with its type: empty in the first listing, or ADDED, MODIFIED, DELETED.
	Seen(kind string, obj Object)
}

// Events is the handler of an informer's events.
type Events struct{ Watcher Watcher }

var _ handler.TypedEventHandler[Object, Request] = Events{}

// Create asks for a look at a new object; those of the first listing come last, unless they are being deleted.
func (e Events) Create(_ context.Context, ev event.TypedCreateEvent[Object], q Queue) {
	priority, kind := priorityOf(ev.Object), "ADDED"
	if ev.IsInInitialList {
		e.Watcher.Listed(ev.Object)
		kind = ""
		if priority == PriorityChange {
			priority = PriorityResume
		}
	}
	e.Watcher.Seen(kind, ev.Object)
	add(q, ev.Object, priority)
}

// Update asks for a look at a changed object. One that was only synchronized again is looked at last, as it may have
// been left with something that nobody needs any more; but that is no event.
func (e Events) Update(_ context.Context, ev event.TypedUpdateEvent[Object], q Queue) {
	if ev.ObjectOld.GetUID() != ev.ObjectNew.GetUID() {
		e.Watcher.Deleted(ev.ObjectOld)
		e.Watcher.Seen("DELETED", ev.ObjectOld)
		e.Watcher.Seen("ADDED", ev.ObjectNew)
	} else if ev.ObjectOld.GetResourceVersion() != ev.ObjectNew.GetResourceVersion() {
		e.Watcher.Seen("MODIFIED", ev.ObjectNew)
	} else {
		add(q, ev.ObjectNew, PriorityResume)
		return
	}
	add(q, ev.ObjectNew, priorityOf(ev.ObjectNew))
}

// Delete asks for the end of an object.
func (e Events) Delete(_ context.Context, ev event.TypedDeleteEvent[Object], q Queue) {
	e.Watcher.Deleted(ev.Object)
	e.Watcher.Seen("DELETED", ev.Object)
	add(q, ev.Object, PriorityDeletion)
}

// Generic does nothing: informers have no such events.
func (Events) Generic(context.Context, event.TypedGenericEvent[Object], Queue) {}

func priorityOf(obj Object) int {
	if obj.GetDeletionTimestamp() != nil {
		return PriorityDeletion
	}
	return PriorityChange
}

func add(q Queue, obj Object, priority int) {
	request := Request{NamespacedName: types.NamespacedName{Namespace: obj.GetNamespace(), Name: obj.GetName()}}
	if prioritized, ok := q.(priorityqueue.PriorityQueue[Request]); ok {
		prioritized.AddWithOpts(priorityqueue.AddOpts{Priority: &priority}, request)
		return
	}
	q.Add(request)
}
