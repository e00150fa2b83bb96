package facadetest

import (
	"context"
	"fmt"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/codec"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/internal/jsontext"
	"github.com/kopf-runtime/kopf-runtime/internal/patching"
	"github.com/kopf-runtime/kopf-runtime/internal/storages"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/changes"
)

// Change is a change of one object, for which a handler is called. Create it with [NewChange].
type Change[T client.Object] struct {
	trial         trial[T]
	reason        kopf.Reason
	memory        changes.Memory
	skippedDelays time.Duration // sum of the delays between calls, except for waits
}

// NewChange returns a change of the object, with the options [Client], [Owns], [Watches], [ID], [Old], [Field],
// [Reason], [Retry] and [Started]. Without options, the object was created. A missing name, uid or creationTimestamp is
// made up. A missing kind is taken from the scheme of the client, or from that of client-go.
//
// NewChange does not modify the object, which need not exist in the client. Writes of the handler by c.Patch and
// similar calls go to a cluster in memory, whose object is in Outcome.Object. With Ensure, note that
// controller-runtime's fake client assigns no uids, so that the replacement of a child by another object with its name
// is not detected.
func NewChange[T client.Object](object T, options ...Option) *Change[T] {
	c := &Change[T]{trial: newTrial(
		"NewChange", object, options, optOwns, optWatches, optOld, optField, optReason, optRetry, optStarted,
	)}
	c.reason = c.trial.resolveReason()
	// An operator finds the reason resume only for objects of its first listing.
	c.memory.Initial = c.reason == kopf.ReasonResume
	c.trial.applyField()
	return c
}

// Call calls the function as the handler of the change, with options of its verb, such as kopf.Retries. Like an
// operator, it makes one pass over the object. To call a function with more arguments, pass a closure.
//
// The next Call repeats the handler for the same change, with the object as it is stored then, and one more Retry. It
// only calls unfinished sub-handlers. The delay counts as elapsed; Call does not wait for it. A handler that waits for
// a child is also called again, whether the child is ready or not; the timeout of the wait uses the clock of the test.
// After the handler has finished, Call does not call the function, and Err says so: see [Change.Edit] and
// [Change.Delete] for the next change.
func (c *Change[T]) Call(ctx context.Context, fn kopf.ChangeFunc[T], options ...kopf.Option) Outcome[T] {
	h := c.trial.registerHandler(func(s kopf.Selection[T]) { c.registerFunction(s, fn, options) })
	// The cluster is created by the first call only: later calls see the writes of earlier ones.
	if c.trial.cluster == nil {
		c.trial.seedCluster(h, c.reason)
	}
	// The children must be in the cache before the pass starts, as an operator's informers are synced before its first
	// pass.
	r := c.trial.beginCall()
	c.trial.informers.syncChildren(ctx)
	// The reason is only needed to explain why the function was not called. The pass detects it again.
	found := c.trial.detectReason(h)
	next, err := c.newHandling(h, r).Reconcile(withLogger(ctx),
		jsontext.NewFromValue(c.trial.cluster.storedBody()), &c.memory)
	if err != nil {
		err = fmt.Errorf("handling the object: %w", err)
	}
	o := c.trial.newOutcome(r, err)
	o.joinError(c.trial.informers.syncError())
	o.joinError(unwatchedKindHint(o.Err))
	// The next call is made as if the delay were over. A wait for a child is not skipped: its timeout would be over,
	// too.
	if next.RequeueAfter != nil && o.Awaited == "" {
		c.skippedDelays += *next.RequeueAfter
	}
	if !o.Called && o.Err == nil {
		o.Err = c.notCalledError(ctx, found)
	}
	return o
}

// registerFunction registers the function with the verb that a user would choose for these options. OnField does not
// cover deletion and resumption, so a field is a filter for these reasons.
func (c *Change[T]) registerFunction(s kopf.Selection[T], fn kopf.ChangeFunc[T], options []kopf.Option) {
	w, all := c.trial.options, kopf.JoinOptions(options...)
	switch {
	case !w.isGiven(optField):
		s.On(w.id, []kopf.Reason{c.reason}, fn, all)
	case c.reason == kopf.ReasonDelete || c.reason == kopf.ReasonResume:
		s.On(w.id, []kopf.Reason{c.reason}, fn, all, kopf.InField(w.field))
	default:
		s.OnField(w.id, w.field, fn, all)
	}
}

// newHandling returns the engine's configuration for one pass, as an operator with this one handler has it.
func (c *Change[T]) newHandling(h *handlers.Handler, r *recorder) *changes.ChangeHandling {
	// The clock stands still during a call, so that a returned delay equals the requested one.
	now := time.Now().UTC().Add(c.skippedDelays)
	handling := &changes.ChangeHandling{
		Handlers: []*adapters.HandlerChain{adapters.New(r.wrapHandler(h), nil)}, HandledKind: c.trial.engineKind(r),
		Lens:           lensOf(h),
		InterimStorage: changes.NewInterimStorage(operatorName, ""),
		Dependents:     c.trial.keeper,
	}
	handling.Prefix, handling.Finalizer = operatorName, finalizer
	handling.Progress = storages.WithFormerIDs(progressStorage, h.KindFormerIDs)
	handling.Clock = func() time.Time { return now }
	// The nil pointer must not become a non-nil interface.
	if watched := c.trial.keeper.OwnedChildren; watched != nil {
		handling.Waits = watched
	}
	return handling
}

// notCalledError returns an error that explains why the function was not called.
func (c *Change[T]) notCalledError(ctx context.Context, found kopf.Reason) error {
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

// Edit changes the stored object after a call, like another client. The next call handles an update, or still the
// creation if that is unfinished. The handler's writes and the operator's stored state are kept. Before the first call,
// change the object itself.
func (c *Change[T]) Edit(change func(object T)) {
	c.trial.editObject(c.trial.subject.codec.Transform(change, codec.Lists{}))
	c.updateReason()
}

// Delete deletes the stored object after a call, like another client. The next call handles the deletion. Children that
// the object cannot own are deleted from the [Client] when its handler is finished, because Kubernetes would not delete
// them. Other children stay, as there is no garbage collection. Before the first call, pass [Reason].
func (c *Change[T]) Delete() {
	c.trial.editObject(func(body map[string]any) error {
		metadata, _ := body["metadata"].(map[string]any)
		metadata["deletionTimestamp"] = time.Now().UTC().Format(time.RFC3339)
		held, _ := metadata["finalizers"].([]any)
		// Without a finalizer, the API server in memory would remove the object at once, before the handler of the
		// deletion.
		for _, name := range []any{finalizer, keepFinalizer} {
			if !slices.Contains(held, name) {
				held = append(slices.Clip(held), name)
			}
		}
		metadata["finalizers"] = held
		return nil
	})
	c.updateReason()
}

// updateReason sets the reason of the next call to the one that an operator detects. It keeps the present reason if the
// object does not differ. The handler is not known here, so its extra fields, such as fields in the status, are not
// compared.
func (c *Change[T]) updateReason() {
	switch found := c.trial.detectReason(&handlers.Handler{}); found {
	case kopf.ReasonCreate, kopf.ReasonUpdate, kopf.ReasonDelete:
		c.reason = found
	}
}

// editObject applies a change of another client to the stored object.
func (t *trial[T]) editObject(transform patching.Transform) {
	if t.cluster == nil {
		panicMisuse("%s: the function was not called yet: change the object that the constructor gets", t.constructor)
	}
	if err := t.cluster.editObject(transform); err != nil {
		panicMisuse("%s: editing the object: %v", t.constructor, err)
	}
}
