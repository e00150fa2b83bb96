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

	changeMethods[T]
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
		c, err := newChange(ctx, call, s.codec, s.op.clients, said)
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
		Type: WatchEventType(eventType), Object: c.Object, ID: c.ID, Client: c.Client, APIReader: c.APIReader,
		changeMethods: changeMethods[T]{c},
	}
}

// GetObject returns e.Object.
func (e *WatchEvent[T]) GetObject() T { return e.Object }
