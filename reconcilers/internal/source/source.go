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

	"github.com/kopf-runtime/kopf-runtime/internal/compact"
)

// Request asks for one pass over an object; or, with the id of a timer, for one tick of that timer.
type Request struct {
	types.NamespacedName
	// Handler is the id of the timer; empty requests a pass.
	Handler string
}

// These are the priorities of requests. A PriorityQueue prefers higher ones, and serves equal ones in the order of
// arrival.
const (
	PriorityDeletion = 200
	PriorityChange   = 100
	PriorityRetry    = 0
	PriorityResume   = -100
	PriorityTimer    = -200
)

// Object is an object of the informer's cache.
type Object = *compact.CachedObject

// Vanished is the type of a deletion whose event was missed. The object is then its last known state, not its final
// one.
const Vanished = "VANISHED"

// Queue accepts requests. A nil Queue drops them, for a Watcher that needs no passes.
type Queue = workqueue.TypedRateLimitingInterface[Request]

// EventObserver observes each event before Events adds its request. It runs on the informer's goroutine, and must not
// block.
type EventObserver interface {
	// NoteListed is called for every object of the first listing, before [EventObserver.NoteEvent].
	NoteListed(obj Object)
	// NoteDeleted is called with the last known state of a deleted object, after [EventObserver.NoteEvent].
	NoteDeleted(obj Object)
	// NoteEvent is called for every event with its type: ADDED, MODIFIED, DELETED or [Vanished]; empty for the first
	// listing. It returns whether a pass is needed. A deletion always leads to a pass.
	NoteEvent(eventType string, obj Object) (pass bool)
}

// DepartureTracker decides about objects that left the cache. With a selector, they may still exist.
type DepartureTracker interface {
	// TrackDeparture is called for such an object. It returns false if the object is known to be deleted. Otherwise it
	// calls gone later, possibly on another goroutine, if the object turns out to be deleted.
	TrackDeparture(obj Object, gone func()) (doubtful bool)
	// TrackReturn is called before the Watcher for an object that the informer did not have. It returns true if the
	// object is known to have existed all the time.
	TrackReturn(obj Object) (back bool)
}

// Events turns the events of an informer into requests.
type Events struct {
	Observer EventObserver
	// Departures may be nil: then every object that leaves the cache is deleted.
	Departures DepartureTracker
}

var _ handler.TypedEventHandler[Object, Request] = Events{}

// Create requests a pass over a new object. Objects of the first listing get the lowest priority, unless they are being
// deleted.
func (e Events) Create(_ context.Context, ev event.TypedCreateEvent[Object], q Queue) {
	priority, eventType := priorityOf(ev.Object), "ADDED"
	if e.Departures != nil && e.Departures.TrackReturn(ev.Object) {
		eventType = "MODIFIED"
	}
	if ev.IsInInitialList {
		e.Observer.NoteListed(ev.Object)
		eventType = ""
		if priority == PriorityChange {
			priority = PriorityResume
		}
	}
	if e.Observer.NoteEvent(eventType, ev.Object) {
		addRequest(q, ev.Object, priority)
	}
}

// Update requests a pass over a changed object. A periodic resync of an unchanged object is not an event, but requests
// a pass with the lowest priority, as the object may carry obsolete progress or an obsolete finalizer.
func (e Events) Update(_ context.Context, ev event.TypedUpdateEvent[Object], q Queue) {
	switch {
	case ev.ObjectOld.GetUID() != ev.ObjectNew.GetUID():
		// The object was deleted and created again while the watch was interrupted, so the deletion event was missed.
		e.Observer.NoteEvent(Vanished, ev.ObjectOld)
		e.Observer.NoteDeleted(ev.ObjectOld)
		e.Observer.NoteEvent("ADDED", ev.ObjectNew)
	case ev.ObjectOld.GetResourceVersion() == ev.ObjectNew.GetResourceVersion():
		addRequest(q, ev.ObjectNew, PriorityResume)
		return
	case !e.Observer.NoteEvent("MODIFIED", ev.ObjectNew):
		return
	}
	addRequest(q, ev.ObjectNew, priorityOf(ev.ObjectNew))
}

// Delete requests the last pass over an object, which delivers the deletion to event handlers. If the deletion is
// uncertain, the request follows when it is confirmed.
func (e Events) Delete(_ context.Context, ev event.TypedDeleteEvent[Object], q Queue) {
	obj, eventType := ev.Object, "DELETED"
	if ev.DeleteStateUnknown {
		eventType = Vanished
	}
	if e.Departures == nil || !e.Departures.TrackDeparture(obj, func() { e.requestLastPass(eventType, obj, q) }) {
		e.requestLastPass(eventType, obj, q)
	}
}

// requestLastPass reports a confirmed deletion, and requests the last pass.
func (e Events) requestLastPass(eventType string, obj Object, q Queue) {
	e.Observer.NoteEvent(eventType, obj)
	e.Observer.NoteDeleted(obj)
	addRequest(q, obj, PriorityDeletion)
}

// Generic does nothing, because informers have no such events.
func (Events) Generic(context.Context, event.TypedGenericEvent[Object], Queue) {}

// priorityOf returns the priority of requests for an existing object.
func priorityOf(obj Object) int {
	if obj.IsDeleting() {
		return PriorityDeletion
	}
	return PriorityChange
}

// addRequest adds a request for the object. A queue without priorities, as in tests, gets a plain one.
func addRequest(q Queue, obj Object, priority int) {
	request := Request{NamespacedName: obj.ObjectKey()}
	if prioritized, ok := q.(priorityqueue.PriorityQueue[Request]); ok {
		prioritized.AddWithOpts(priorityqueue.AddOpts{Priority: &priority}, request)
	} else if q != nil {
		q.Add(request)
	}
}

// InformerSource is the source of a controller whose requests come from an informer.
type InformerSource struct {
	Informer toolscache.SharedIndexInformer
	Events   Events
	// OnListed is called when Events has handled the whole first listing, before any request is served.
	OnListed func()

	synced func() bool // reports whether Events has handled the first listing
}

var _ ctrlsource.TypedSyncingSource[Request] = (*InformerSource)(nil)

// Start registers Events with the informer. It first gets the objects that the informer already has.
func (s *InformerSource) Start(ctx context.Context, q workqueue.TypedRateLimitingInterface[Request]) error {
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
			// The informer missed the deletion event, and found the deletion by a new list.
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

// WaitForSync returns when Events has handled the first listing and Listed has returned, or when the context ends. It
// never returns an error, because an error would end the controller.
func (s *InformerSource) WaitForSync(ctx context.Context) error {
	if toolscache.WaitForCacheSync(ctx.Done(), s.synced) && ctx.Err() == nil {
		s.OnListed()
	}
	return nil
}
