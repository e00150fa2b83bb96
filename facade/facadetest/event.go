package facadetest

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/compact"
	"github.com/kopf-runtime/kopf-runtime/internal/execution"
	"github.com/kopf-runtime/kopf-runtime/internal/jsontext"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/events"
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
	h := e.trial.registerHandler(
		func(s kopf.Selection[T]) { s.OnEvent(e.trial.options.id, fn, kopf.JoinOptions(options...)) },
	)
	r := e.trial.beginCall()
	handling := events.EventHandling{
		Handlers: []*adapters.HandlerChain{adapters.New(r.wrapHandler(h), nil)}, HandledKind: e.trial.engineKind(r),
	}
	ctx, body := withLogger(ctx), e.trial.cluster.storedBody()
	seen, err := compact.NewFromBody(body)
	if err != nil {
		panic(err) // unreachable: the body was decoded from JSON
	}
	// The engine delivers the event, and then writes the changes of all handlers.
	event := events.RawEvent{Type: string(e.kind), Object: seen}
	handling.WriteChanges(ctx, body, handling.DeliverEvents(ctx, []events.RawEvent{event}))
	return e.trial.newOutcome(r, nil)
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
	e.child = newSubject("NewChildEvent", child, e.trial.options)
	return e
}

// Call calls the function as a handler of the parent for the event of the child, unless kopf.WhenChild excludes the
// child.
func (e *ChildEvent[T, C]) Call(
	ctx context.Context, fn func(ctx context.Context, e *kopf.ChildEvent[T, C]) error, options ...kopf.Option,
) Outcome[T] {
	h := e.trial.registerHandler(func(s kopf.Selection[T]) {
		s.Owns(e.child.newPrototype())
		kopf.OnChild(s, e.trial.options.id, fn, kopf.JoinOptions(options...))
	})
	r := e.trial.beginCall()
	// The filter runs before the attempt, as in the engine. A panic in it becomes an error.
	if h.ChildFilter != nil {
		wants, err := h.CallCriterion("filter of children",
			func() (bool, error) { return h.ChildFilter(ctx, e.child.bodyAsStored()) })
		if !wants || err != nil {
			return e.trial.newOutcome(r, err)
		}
	}
	body := e.trial.cluster.storedBody()
	// The cause has the parent as its object; the child is an argument of the call.
	a := execution.NewAttempt(r.wrapHandler(h),
		&cause.Cause{EventType: string(e.kind), Object: jsontext.NewFromValue(body)},
		body)
	a.Call.Child, a.Call.LatestState = e.child.bodyAsStored(), e.trial.cluster
	err := e.trial.runAttempt(withLogger(ctx), a, r)
	return e.trial.newOutcome(r, err)
}
