package facadetest

import (
	"context"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/changes"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/storages"
	"github.com/kopf-runtime/kopf-runtime/storage/jsontext"
)

// Change is a change of one object, for a handler to be called for. Make it with [NewChange].
type Change[T client.Object] struct {
	trial   trial[T]
	reason  kopf.Reason
	memory  changes.Memory
	skipped time.Duration // from one call to the next one, but for waits
}

// NewChange makes a change of the object, with the options [Client], [Owns], [ID], [Old], [Field], [Reason],
// [Retry] and [Started]. Without any, the object was created. What the object lacks of a name, a uid and a
// creationTimestamp is made up; if it has no kind, it is that of the scheme of the client, or of client-go.
//
// The object is not changed, and need not be in the client: what the handler writes to it by c.Patch and the like goes
// to a cluster in memory, which Outcome.Object tells of. Of Ensure with controller-runtime's fake client: its objects
// have no uids, so that it is not noticed if a child is replaced by another object of its name.
func NewChange[T client.Object](object T, options ...Option) *Change[T] {
	c := &Change[T]{trial: newTrial(
		"NewChange", object, options, optOwns, optWatches, optOld, optField, optReason, optRetry, optStarted,
	)}
	c.reason = c.trial.reason()
	c.memory.Initial = c.reason == kopf.ReasonResume
	c.trial.applyField()
	return c
}

// Call calls the function as the handler of the change, with options of its verb, such as kopf.Retries: as an operator
// does, with one pass over the object. A function with more arguments is called in a closure.
//
// Another call is the next one for the same change: of the object as it is by then, with one more Retry, of the
// sub-handlers that are not finished, and when the delay is over, without waiting for that. A handler that waits for a
// child is called again, too, whether the child is as it wants it or not; the time for that goes on as it does for the
// test. When the handler is finished, no function is called any more, and Err says so: see [Change.Edit] and
// [Change.Delete] for the next change.
func (c *Change[T]) Call(ctx context.Context, fn kopf.ChangeFunc[T], options ...kopf.Option) Outcome[T] {
	absent := &noClient{}
	h := c.trial.handler(absent, func(s kopf.Selection[T]) { c.register(s, fn, options) })
	if c.trial.cluster == nil {
		c.trial.seed(h, c.reason)
	}
	c.trial.cluster.begin()
	c.trial.watch.look(ctx)
	found := c.trial.detect(h)
	r := &recorder{about: string(c.trial.subject.uid)}
	next, err := c.handling(h, r).Reconcile(listening(ctx, r), jsontext.Of(c.trial.cluster.body()), &c.memory)
	if err != nil {
		err = fmt.Errorf("handling the object: %w", err)
	}
	o := c.trial.outcome(r, absent, err)
	o.add(c.trial.watch.err())
	o.add(unwatched(o.Err))
	if next.After != nil && o.Awaited == "" {
		c.skipped += *next.After
	}
	if !o.Called && o.Err == nil {
		o.Err = c.notCalled(ctx, found)
	}
	return o
}

// register does what a user does.
func (c *Change[T]) register(s kopf.Selection[T], fn kopf.ChangeFunc[T], options []kopf.Option) {
	w, all := c.trial.wishes, kopf.JoinOptions(options...)
	switch {
	case !w.has(optField):
		s.On(w.id, []kopf.Reason{c.reason}, fn, all)
	case c.reason == kopf.ReasonDelete || c.reason == kopf.ReasonResume:
		s.On(w.id, []kopf.Reason{c.reason}, fn, all, kopf.InField(w.field))
	default:
		s.OnField(w.id, w.field, fn, all)
	}
}

// handling is how an operator handles its objects.
func (c *Change[T]) handling(h *handlers.Handler, r *recorder) *changes.Handling {
	now := time.Now().UTC().Add(c.skipped) // the clock stands still for a call, so that delays are what was asked for
	handling := &changes.Handling{
		Handlers: []*adapters.Handler{adapters.New(r.watch(h), nil)}, Kind: c.trial.kind(r),
		Lens:       lensOf(h),
		Interim:    changes.NewInterim(operator, ""),
		Dependents: c.trial.keeper,
	}
	handling.Finalizer, handling.Progress = finalizer, storages.WithFormerIDs(records, h.Renamed)
	handling.Clock = func() time.Time { return now }
	if watched := c.trial.keeper.Owned; watched != nil {
		handling.Waits = watched
	}
	return handling
}

// notCalled is why the function was not called.
func (c *Change[T]) notCalled(ctx context.Context, found kopf.Reason) error {
	if ctx.Err() != nil {
		return fmt.Errorf("facadetest: the function was not called: %w", context.Cause(ctx))
	}
	if found == c.reason || found == kopf.ReasonDelete {
		return fmt.Errorf("facadetest: the function was not called: the handler is finished, or its options, such as "+
			"kopf.Value, leave out this change (the reason is %q)", found)
	}
	return fmt.Errorf("facadetest: the function was not called: it is for the reason %q, and an operator finds the "+
		"reason %q, by comparing the object with what was handled last: does Old differ, or was the change handled "+
		"by a former call?", c.reason, found)
}
