package facadetest

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/cause"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/compact"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/events"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
	"github.com/kopf-runtime/kopf-runtime/storage/jsontext"
)

// WatchEvent is one raw event of one object, for which a handler is called. Create it with [NewWatchEvent].
type WatchEvent[T client.Object] struct {
	trial trial[T]
	kind  kopf.WatchEventType
}

// NewWatchEvent returns a raw event of the object, with the options [Client] and [ID]. For the defaults, see
// [NewChange]. Writes to a deleted object are dropped, because it does not exist any more.
func NewWatchEvent[T client.Object](eventType kopf.WatchEventType, object T, options ...Option) *WatchEvent[T] {
	return &WatchEvent[T]{trial: newTrial("NewWatchEvent", object, options), kind: eventType}
}

// Call calls the function as a handler of the event and reports its errors in Err. An operator only logs these errors,
// unless the option kopf.Errors says otherwise.
func (e *WatchEvent[T]) Call(ctx context.Context, fn kopf.WatchEventFunc[T], options ...kopf.Option) Outcome[T] {
	absent := &noClient{}
	h := e.trial.handler(
		absent,
		func(s kopf.Selection[T]) { s.OnEvent(e.trial.wishes.id, fn, kopf.JoinOptions(options...)) },
	)
	if e.trial.cluster == nil {
		// Raw events do not need the operator's stored state, so the object is stored unchanged.
		e.trial.cluster = newCluster(e.trial.subject.resource(), e.trial.subject.body())
	}
	c := e.trial.cluster
	c.begin()
	r := &recorder{about: string(e.trial.subject.uid)}
	handling := events.Handling{
		Handlers: []*adapters.Handler{adapters.New(r.watch(h), nil)}, Kind: e.trial.kind(r),
	}
	ctx, body := listening(ctx, r), c.body()
	seen, err := compact.Of(body)
	if err != nil {
		panic(err) // unreachable: the body was decoded from JSON
	}
	// The engine delivers the event, and then writes the changes of all handlers.
	event := events.Event{Type: string(e.kind), Object: seen}
	handling.Write(ctx, body, handling.Deliver(ctx, []events.Event{event}))
	return e.trial.outcome(r, absent, nil)
}

// ChildEvent is an event of a child of one object, for which a handler is called. Create it with [NewChildEvent].
type ChildEvent[T, C client.Object] struct {
	trial trial[T]
	kind  kopf.WatchEventType
	child *subject[C]
}

// NewChildEvent returns an event of a child of the object, with the options [Client], [ID], [Retry] and [Started]. For
// the defaults, see [NewChange]. The child does not need an owner reference.
func NewChildEvent[T, C client.Object](
	eventType kopf.WatchEventType, object T, child C, options ...Option,
) *ChildEvent[T, C] {
	e := &ChildEvent[T, C]{trial: newTrial("NewChildEvent", object, options, optRetry, optStarted), kind: eventType}
	e.child = newSubject("NewChildEvent", child, e.trial.wishes)
	return e
}

// Call calls the function as a handler of the parent for the event of the child, unless kopf.WhenChild excludes the
// child.
func (e *ChildEvent[T, C]) Call(
	ctx context.Context, fn func(ctx context.Context, e *kopf.ChildEvent[T, C]) error, options ...kopf.Option,
) Outcome[T] {
	absent := &noClient{}
	h := e.trial.handler(absent, func(s kopf.Selection[T]) {
		s.Owns(e.child.prototype())
		kopf.OnChild(s, e.trial.wishes.id, fn, kopf.JoinOptions(options...))
	})
	if e.trial.cluster == nil {
		e.trial.cluster = newCluster(e.trial.subject.resource(), e.trial.subject.body())
	}
	c := e.trial.cluster
	c.begin()
	r := &recorder{about: string(e.trial.subject.uid)}
	// The filter runs before the attempt, as in the engine. A panic in it becomes an error.
	if h.Wants != nil {
		wants, err := h.Ask("filter of children", func() (bool, error) { return h.Wants(ctx, e.child.body()) })
		if !wants || err != nil {
			return e.trial.outcome(r, absent, err)
		}
	}
	body := c.body()
	// The cause has the parent as its object; the child is an argument of the call.
	a := execution.New(r.watch(h), &cause.Cause{Type: string(e.kind), Object: jsontext.Of(body)}, body)
	a.Call.Child, a.Call.Newest = e.child.body(), c
	err := e.trial.run(listening(ctx, r), a, r)
	return e.trial.outcome(r, absent, err)
}
