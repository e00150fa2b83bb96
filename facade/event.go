package kopf

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/registry"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/events"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
)

// WatchEventType is the type of a raw event. Kopf: RawEventType.
type WatchEventType string

// The types of raw events.
const (
	// WatchEventListed: the object existed when the watch started. Kopf: None.
	WatchEventListed WatchEventType = events.Listed
	// WatchEventAdded: the object is new, or its labels match now. Kopf: "ADDED".
	WatchEventAdded WatchEventType = events.Added
	// WatchEventModified: the object has changed, also by own writes. Kopf: "MODIFIED".
	WatchEventModified WatchEventType = events.Modified
	// WatchEventDeleted: the object is gone. Kopf: "DELETED".
	WatchEventDeleted WatchEventType = events.Deleted
)

// WatchEvent is the argument of a handler of raw events. Its methods are those of [Change].
type WatchEvent[T client.Object] struct {
	// Type of the event.
	Type WatchEventType
	// Object is the object as of the event. Kopf: body, event.
	Object T
	// ID is the handler id.
	ID string
	// See [Change].
	Client    client.Client
	APIReader client.Reader

	change *Change[T]
}

// WatchEventFunc handles raw events.
type WatchEventFunc[T client.Object] func(ctx context.Context, e *WatchEvent[T]) error

// OnEvent registers a handler of all raw events of the selected objects. Calls for one object are sequential and in
// order, before its other handlers. Events can repeat; those before the start are lost. Errors are logged, not retried.
// Of more than 256 waiting events of an object, the oldest changes are dropped. Kopf: on.event.
func (s Selection[T]) OnEvent(id string, fn WatchEventFunc[T], opts ...watchEventOption) {
	h := handlers.Handler{ID: id, Family: handlers.Watching, ReadsText: true, DecodedType: s.codec.StructType()}
	chosen, ok := prepareHandler(s, &h, "OnEvent", fn == nil, asOptions(opts), nil)
	if !ok {
		return
	}
	if err := s.addEventFilter(&h, chosen); err != nil {
		s.kind.AddError(fmt.Errorf("OnEvent(%q): %w", id, err))
		return
	}
	setFunction(&h, fn)
	said := &loggedMistakes{}
	h.Call = func(ctx context.Context, call *handlers.Invocation) error {
		c, err := s.newChange(ctx, call, said)
		if err != nil {
			return err
		}
		return c.finishCall(fn(ctx, newWatchEvent(c, call.Cause.EventType)))
	}
	s.kind.Registry.RegisterHandler(registry.HandlerEntry{Kind: s.kind, Verb: "OnEvent", Handler: &h})
}

// newWatchEvent returns the argument for one raw event.
func newWatchEvent[T client.Object](c *Change[T], eventType string) *WatchEvent[T] {
	return &WatchEvent[T]{
		Type: WatchEventType(
			eventType,
		), Object: c.Object, ID: c.ID, Client: c.Client, APIReader: c.APIReader, change: c,
	}
}

// Patch is [Change.Patch].
func (e *WatchEvent[T]) Patch(change func(object T)) { e.change.Patch(change) }

// TryPatch is [Change.TryPatch].
func (e *WatchEvent[T]) TryPatch(change func(object T) error) { e.change.TryPatch(change) }

// GetObject returns e.Object.
func (e *WatchEvent[T]) GetObject() T { return e.Object }

// Latest is [Change.Latest].
func (e *WatchEvent[T]) Latest() T { return e.change.Latest() }

// Resource is [Change.Resource].
func (e *WatchEvent[T]) Resource() Resource { return e.change.Resource() }

// SetResult is [Change.SetResult].
func (e *WatchEvent[T]) SetResult(value any) { e.change.SetResult(value) }

// RawResult is [Change.RawResult].
func (e *WatchEvent[T]) RawResult(id string) (any, error) { return e.change.RawResult(id) }

// Info is [Change.Info].
func (e *WatchEvent[T]) Info(reason, message string) { e.change.Info(reason, message) }

// Warn is [Change.Warn].
func (e *WatchEvent[T]) Warn(reason, message string) { e.change.Warn(reason, message) }

// Event is [Change.Event].
func (e *WatchEvent[T]) Event(eventType, reason, message string) {
	e.change.Event(eventType, reason, message)
}
