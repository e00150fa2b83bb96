package source

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	ctrlsource "sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/compact"
)

// Request asks for one pass over an object; or, with the id of a timer, for one tick of that timer.
type Request struct {
	types.NamespacedName
	// Handler is the id of the timer; empty is a pass.
	Handler string
}

// The priorities of requests: a PriorityQueue serves higher ones first, and equal ones in the order of arrival.
const (
	PriorityDeletion = 200
	PriorityChange   = 100
	PriorityRetry    = 0
	PriorityResume   = -100
	PriorityTimer    = -200
)

// Object is one of the informer's cache.
type Object = *compact.Object

// Vanished is the type of a deletion whose event was missed: the object is its last known state, not its final one.
const Vanished = "VANISHED"

// Queue takes the requests. Nil takes none, for a Watcher that needs no passes.
type Queue = workqueue.TypedRateLimitingInterface[Request]

// Watcher observes each event before Events adds its request.
type Watcher interface {
	// Listed gets every object of the first listing.
	Listed(obj Object)
	// Deleted gets the last known state of an object that does not exist any more.
	Deleted(obj Object)
	// Seen gets every event with its type: empty in the first listing, or ADDED, MODIFIED, DELETED, [Vanished]. It
	// returns whether a pass follows. A pass always follows a deletion.
	Seen(eventType string, obj Object) (pass bool)
}

// Doubts are about the objects that an informer does not have any more: with a selector, they may be there still.
type Doubts interface {
	// Leave is told of such an object. False means that it is gone. Otherwise, gone is called when that is known, be it
	// on another goroutine, and not at all if it turns out to be there.
	Leave(obj Object, gone func()) (doubtful bool)
	// Meet is told of an object that the informer did not have, before Watcher is. It tells whether that is known to
	// have been there all the time.
	Meet(obj Object) (back bool)
}

// Events turns the events of an informer into requests.
type Events struct {
	Watcher Watcher
	// Doubts are nil if an object that the informer does not have any more is gone.
	Doubts Doubts
}

var _ handler.TypedEventHandler[Object, Request] = Events{}

// Create requests a pass over a new object. Objects of the first listing come last, unless they are being deleted.
func (e Events) Create(_ context.Context, ev event.TypedCreateEvent[Object], q Queue) {
	priority, eventType := priorityOf(ev.Object), "ADDED"
	if e.Doubts != nil && e.Doubts.Meet(ev.Object) {
		eventType = "MODIFIED"
	}
	if ev.IsInInitialList {
		e.Watcher.Listed(ev.Object)
		eventType = ""
		if priority == PriorityChange {
			priority = PriorityResume
		}
	}
	if e.Watcher.Seen(eventType, ev.Object) {
		add(q, ev.Object, priority)
	}
}

// Update requests a pass over a changed object. A periodic resync of an unchanged object is no event, but requests a
// pass of the lowest priority of all passes, as the object may carry progress or a finalizer that is obsolete.
func (e Events) Update(_ context.Context, ev event.TypedUpdateEvent[Object], q Queue) {
	switch {
	case ev.ObjectOld.GetUID() != ev.ObjectNew.GetUID():
		e.Watcher.Deleted(ev.ObjectOld)
		e.Watcher.Seen(Vanished, ev.ObjectOld)
		e.Watcher.Seen("ADDED", ev.ObjectNew)
	case ev.ObjectOld.GetResourceVersion() == ev.ObjectNew.GetResourceVersion():
		add(q, ev.ObjectNew, PriorityResume)
		return
	case !e.Watcher.Seen("MODIFIED", ev.ObjectNew):
		return
	}
	add(q, ev.ObjectNew, priorityOf(ev.ObjectNew))
}

// Delete requests the last pass over an object, which delivers the deletion to event handlers.
func (e Events) Delete(_ context.Context, ev event.TypedDeleteEvent[Object], q Queue) {
	obj, eventType := ev.Object, "DELETED"
	if ev.DeleteStateUnknown {
		eventType = Vanished
	}
	if e.Doubts == nil || !e.Doubts.Leave(obj, func() { e.gone(eventType, obj, q) }) {
		e.gone(eventType, obj, q)
	}
}

func (e Events) gone(eventType string, obj Object, q Queue) {
	e.Watcher.Deleted(obj)
	e.Watcher.Seen(eventType, obj)
	add(q, obj, PriorityDeletion)
}

// Generic does nothing: informers have no such events.
func (Events) Generic(context.Context, event.TypedGenericEvent[Object], Queue) {}

func priorityOf(obj Object) int {
	if obj.Deleting() {
		return PriorityDeletion
	}
	return PriorityChange
}

func add(q Queue, obj Object, priority int) {
	request := Request{NamespacedName: obj.Key()}
	if prioritized, ok := q.(priorityqueue.PriorityQueue[Request]); ok {
		prioritized.AddWithOpts(priorityqueue.AddOpts{Priority: &priority}, request)
	} else if q != nil {
		q.Add(request)
	}
}

// Informed is the source of a controller whose requests come from the events of an informer.
type Informed struct {
	Informer toolscache.SharedIndexInformer
	Events   Events
	// Listed is called when Events had all of the first listing, before any request is served.
	Listed func()

	synced func() bool // whether Events had all of the first listing
}

var _ ctrlsource.TypedSyncingSource[Request] = (*Informed)(nil)

// Start begins with the objects that the informer has by now.
func (s *Informed) Start(ctx context.Context, q workqueue.TypedRateLimitingInterface[Request]) error {
	registered, err := s.Informer.AddEventHandler(toolscache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(item any, isInInitialList bool) {
			if obj, is := item.(Object); is {
				s.Events.Create(ctx, event.TypedCreateEvent[Object]{Object: obj, IsInInitialList: isInInitialList}, q)
			}
		},
		UpdateFunc: func(former, item any) {
			before, _ := former.(Object)
			if after, is := item.(Object); is {
				s.Events.Update(ctx, event.TypedUpdateEvent[Object]{ObjectOld: before, ObjectNew: after}, q)
			}
		},
		DeleteFunc: func(item any) {
			gone, unseen := item.(toolscache.DeletedFinalStateUnknown)
			if unseen {
				item = gone.Obj
			}
			if obj, is := item.(Object); is {
				s.Events.Delete(ctx, event.TypedDeleteEvent[Object]{Object: obj, DeleteStateUnknown: unseen}, q)
			}
		},
	})
	if err != nil {
		return fmt.Errorf("adding the events of a controller to its informer: %w", err)
	}
	s.synced = registered.HasSynced
	return nil
}

// WaitForSync returns when Events had all of the first listing, or when the context ends.
func (s *Informed) WaitForSync(ctx context.Context) error {
	if toolscache.WaitForCacheSync(ctx.Done(), s.synced) && ctx.Err() == nil {
		s.Listed()
	}
	return nil
}
