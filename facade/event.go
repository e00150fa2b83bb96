package kopf

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/events"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
)

// EventType is what a raw event tells of. Kopf: RawEventType.
type WatchEventType string

// The types of raw events.
const (
	// EventListed: the object was there when the operator began to look. Kopf: None.
	WatchEventListed WatchEventType = events.Listed
	// EventAdded: the object is new; or its labels match for the first time, where others are not watched, see
	// [Selection.MatchingLabels]. Kopf: "ADDED".
	WatchEventAdded WatchEventType = events.Added
	// EventModified: anything about the object is different, be it the operator's own writing. Kopf: "MODIFIED".
	WatchEventModified WatchEventType = events.Modified
	// EventDeleted: the object is no more. Kopf: "DELETED".
	WatchEventDeleted WatchEventType = events.Deleted
)

// Event is one raw event of one object, as one handler gets it. See [Change] for what it has in common with changes.
type WatchEvent[T client.Object] struct {
	// Type is what happened.
	Type WatchEventType
	// Object is the object as it was then; in the end, its last state. Kopf: body, event.
	Object T
	// ID is the handler's.
	ID string
	// Client reads and writes other objects, Live reads past all caches: see [Change].
	Client    client.Client
	APIReader client.Reader

	change *Change[T]
}

// EventFunc is a function that handles raw events.
type WatchEventFunc[T client.Object] func(ctx context.Context, e *WatchEvent[T]) error

// OnEvent registers a handler for all raw events of the selected objects. Kopf: on.event.
//
// # Flow
//
// The handlers are called for each event of an object in the order in which these came, before anything else is done
// for the object, and never twice at once for one object. An event can come twice, and those that came while no
// operator was running are not seen: what was there is listed, and what is gone is not mentioned. A watch may show
// several quick changes as one.
//
// # Errors
//
// An error is logged, and that is all: there are no retries. If more than 256 events of one object wait, because its
// handlers are slow, the oldest changes are left out, and counted by the metric kopf_events_dropped_total.
func (s Selection[T]) OnEvent(id string, fn WatchEventFunc[T], opts ...watchEventOption) {
	h := handlers.Handler{ID: id, Family: handlers.Watching, ReadsText: true, Type: s.codec.Type()}
	chosen, ok := prepare(s, &h, "OnEvent", fn == nil, asOptions(opts), nil)
	if !ok {
		return
	}
	if err := s.addEventFilter(&h, chosen); err != nil {
		s.kind.addError(fmt.Errorf("OnEvent(%q): %w", id, err))
		return
	}
	setFunction(&h, fn)
	said := &mistakes{}
	h.Call = func(ctx context.Context, call *handlers.Invocation) error {
		c, err := s.newChange(ctx, call, said)
		if err != nil {
			return err
		}
		return c.end(fn(ctx, eventOf(c, call.Cause.Type)))
	}
	s.kind.op.register(registration{kind: s.kind, verb: "OnEvent", handler: &h})
}

func eventOf[T client.Object](c *Change[T], eventType string) *WatchEvent[T] {
	return &WatchEvent[T]{
		Type: WatchEventType(eventType), Object: c.Object, ID: c.ID, Client: c.Client, APIReader: c.APIReader, change: c,
	}
}

// Patch changes the object, see [Change.Patch]: it is written when the handlers of the event have returned. If it is
// gone by then, nothing is. A function that always changes something is called for that again and again.
func (e *WatchEvent[T]) Patch(change func(object T)) { e.change.Patch(change) }

// TryPatch is Patch with a function that may fail, see [Change.TryPatch].
func (e *WatchEvent[T]) TryPatch(change func(object T) error) { e.change.TryPatch(change) }

// GetObject returns e.Object, for functions that take a [Call].
func (e *WatchEvent[T]) GetObject() T { return e.Object }

// Latest is the newest state of the object that is known by now, see [Change.Latest]. Of one that is gone, it is that
// of the event.
func (e *WatchEvent[T]) Latest() T { return e.change.Latest() }

// Resource is what the object is one of, see [Change.Resource].
func (e *WatchEvent[T]) Resource() Resource { return e.change.Resource() }

// SetResult sets what is written to status.<id>, see [Change.SetResult].
func (e *WatchEvent[T]) SetResult(value any) { e.change.SetResult(value) }

// RawResult is what a handler has left in status.<id>, see [Result].
func (e *WatchEvent[T]) RawResult(id string) (any, error) { return e.change.RawResult(id) }

// Info posts a Kubernetes event of the type Normal about the object, see [Change.Event].
func (e *WatchEvent[T]) Info(reason, message string) { e.change.Info(reason, message) }

// Warn posts a Kubernetes event of the type Warning about the object, see [Change.Event].
func (e *WatchEvent[T]) Warn(reason, message string) { e.change.Warn(reason, message) }

// Event posts a Kubernetes event of any type about the object, see [Change.Event].
func (e *WatchEvent[T]) Event(eventType, reason, message string) {
	e.change.Event(eventType, reason, message)
}
