package kopf

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/codec"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/registry"
	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/events"
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

// WhenEvent is [WhenChange] for OnEvent, such as for e.Type == kopf.WatchEventDeleted. Kopf: when= with type.
func WhenEvent[T client.Object](matches func(ctx context.Context, e *WatchEvent[T]) bool) watchEventOption {
	return matchesOption[watchEventOption]("WhenEvent", matches, matches == nil)
}

// addEventFilter turns WhenEvent into a filter of the handler.
func (s Selection[T]) addEventFilter(h *handlers.Handler, chosen []option) error {
	matches, given, err := matcherOf[func(ctx context.Context, e *WatchEvent[T]) bool](chosen)
	if !given {
		return err
	}
	id := h.ID
	h.Filters = append(slices.Clip(h.Filters), func(ctx context.Context, what *cause.Cause) (bool, error) {
		c, err := changeOfFilter(ctx, s.codec, s.op.clients, what)
		if err != nil {
			return false, err
		}
		c.ID = id // a filter has no handler to take it from
		return matches(ctx, newWatchEvent(c, what.EventType)), c.finishCall(nil)
	})
	return nil
}

// ownsOption is an option of Owns.
type ownsOption func(r *ownsOptions)

// ownsOptions holds the options of Owns, and whole for Watches: any object of the kind, not only children.
type ownsOptions struct{ onlyEnsured, anyObject bool }

// OnlyEnsured makes [Selection.Owns] watch only objects with the label <prefix>/parent-uid, which [Change.Ensure] sets.
// [OnChild] and [WaitFor] do not see others. It has no effect if the kind is watched otherwise, too.
func OnlyEnsured() ownsOption { return func(r *ownsOptions) { r.onlyEnsured = true } }

// Owns watches children of one kind, given by an empty object: objects with an owner reference to a selected object,
// and those declared by [Change.Ensure]. The latter are restored if other clients edit or delete them, without a call
// of the handler. Kopf: none.
//
//	dbs.Owns(&appsv1.Deployment{})
//	kopf.OnChild(dbs, "availability", showAvailability)
//
// The operator needs the verbs list and watch. Missing permissions or kinds are logged and retried. See
// docs/children.md.
func (s Selection[T]) Owns(child client.Object, opts ...ownsOption) {
	s.registerWatch("Owns", child, opts...)
}

// Watches watches a kind so that [WaitFor] can wait for any object of it. It restores children as Owns does. All
// objects of the kind in the operator's namespaces are kept in memory. Kopf: none.
func (s Selection[T]) Watches(object client.Object) {
	s.registerWatch("Watches", object, func(r *ownsOptions) { r.anyObject = true })
}

// registerWatch makes the operator watch the kind of the object on behalf of the selected objects.
func (s Selection[T]) registerWatch(verb string, child client.Object, opts ...ownsOption) {
	where := registry.CallerLocation()
	if s.kind == nil || !s.op.isValid() {
		s.kind.AddError(fmt.Errorf("%s(%T): the selection is empty: make it with kopf.For", verb, child))
		return
	}
	op := s.op
	// For checks the object and records its errors. A selection without Find is invalid.
	objects := For(op, child)
	if objects.kind.Find == nil || s.kind.Find == nil {
		return
	}
	var chosen ownsOptions
	for _, opt := range opts {
		if opt == nil {
			s.kind.AddError(fmt.Errorf("%s(%T): an option is nil: leave it out", verb, child))
			continue
		}
		opt(&chosen)
	}
	// Two handlers that are never called: h makes the operator watch the kind, and the other one connects that watch
	// with the selected objects. OnChild adds the handlers with functions.
	id := fmt.Sprintf("%s(%T) at %s", verb, child, where)
	h := &handlers.Handler{ID: id, Family: handlers.Parent, Location: where, AllowAnyObject: chosen.anyObject}
	h.ParentHandler = h
	op.registry.RegisterHandler(registry.HandlerEntry{
		Kind: objects.kind, Verb: verb, Handler: h, OnlyEnsured: chosen.onlyEnsured,
	})
	op.registry.RegisterHandler(registry.HandlerEntry{
		Kind: s.kind, Verb: verb, Child: reflect.TypeOf(child),
		Handler: &handlers.Handler{ID: id, Family: handlers.Child, ParentHandler: h, Location: where},
	})
}

// ChildEvent is the argument of a handler of [OnChild]. Its methods are those of [Change], for the owner.
type ChildEvent[T, C client.Object] struct {
	// Type of the event.
	Type WatchEventType
	// Child is a copy of the newest, or last, state of the child.
	Child C
	// Object is the owner.
	Object T
	// ID is the handler id.
	ID string
	// Retry is the number of attempts since the handler last succeeded for the child.
	Retry int
	// See [Change].
	Client    client.Client
	APIReader client.Reader

	changeMethods[T]
}

// GetObject returns the owner.
func (e *ChildEvent[T, C]) GetObject() T { return e.Object }

// OnChild registers a handler of the selected objects that is called for each child at start, with [WatchEventListed],
// and after each change of the child. It needs [Selection.Owns] before. For [Unstructured], it handles all kinds owned
// as unstructured objects. Kopf: none.
//
// Writes by [Change.Ensure] do not cause a call. Calls for one object are sequential, after the handlers of its
// changes. Deletions during a restart or pause are not reported.
//
// Errors are retried as in [ChangeFunc], with the newest state; after a permanent error, at the next change of the
// child.
func OnChild[T, C client.Object](
	s Selection[T], id string, fn func(ctx context.Context, e *ChildEvent[T, C]) error, opts ...childOption,
) {
	h := handlers.Handler{ID: id, Family: handlers.Child}
	chosen, ok := prepareHandler(s, &h, "OnChild", fn == nil, asOptions(opts), nil)
	if !ok {
		return
	}
	// For unstructured objects, there can be several kinds, and the handler is registered for each.
	kinds := s.kind.Registry.OwnedTypes(s.kind, reflect.TypeFor[C]())
	if len(kinds) == 0 {
		s.kind.AddError(fmt.Errorf("OnChild(%q): children of the Go type %s are not watched: call Owns for an empty "+
			"object of this type before", id, reflect.TypeFor[C]()))
		return
	}
	children := codec.New[C](reflect.TypeFor[C]().Elem())
	if err := addChildFilter(&h, children, chosen); err != nil {
		s.kind.AddError(fmt.Errorf("OnChild(%q): %w", id, err))
		return
	}
	setFunction(&h, fn)
	said := &loggedMistakes{}
	h.Call = func(ctx context.Context, call *handlers.Invocation) error {
		child, err := children.Decode(call.Child)
		if err != nil {
			return Permanent(fmt.Errorf("decoding the child: %w", err))
		}
		c, err := newChange(ctx, call, s.codec, s.op.clients, said)
		if err != nil {
			return err
		}
		return c.finishCall(fn(ctx, &ChildEvent[T, C]{
			Type: WatchEventType(call.Cause.EventType), Child: child, Object: c.Object, ID: c.ID, Retry: c.Retry,
			Client: c.Client, APIReader: c.APIReader, changeMethods: changeMethods[T]{c},
		}))
	}
	for _, owning := range kinds {
		// Each entry needs a handler of its own, with its own kind of children.
		own := h
		own.ParentHandler = owning
		s.kind.Registry.RegisterHandler(registry.HandlerEntry{Kind: s.kind, Verb: "OnChild", Handler: &own})
	}
}

// WhenChild restricts a handler of [OnChild] to children for which the function returns true. Filters of the selection
// apply to the owner. Kopf: none.
func WhenChild[C client.Object](matches func(ctx context.Context, child C) bool) childOption {
	return matchesOption[childOption]("WhenChild", matches, matches == nil)
}

// addChildFilter turns WhenChild into a filter of the handler. It is not one of Filters, which apply to the owner.
func addChildFilter[C client.Object](h *handlers.Handler, of *codec.Codec[C], chosen []option) error {
	matches, given, err := matcherOf[func(ctx context.Context, child C) bool](chosen)
	if !given {
		return err
	}
	h.ChildFilter = func(ctx context.Context, raw map[string]any) (bool, error) {
		child, err := of.Decode(raw)
		if err != nil {
			return false, fmt.Errorf("decoding the child: %w", err)
		}
		return matches(ctx, child), nil
	}
	return nil
}
