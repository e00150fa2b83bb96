package changes

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/internal/execution"
	"github.com/kopf-runtime/kopf-runtime/internal/jsontext"
	"github.com/kopf-runtime/kopf-runtime/internal/patching"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/storage/diffbase"
)

// maxCheckpointInterval is the longest wait before the next checkpoint after failed ones.
const maxCheckpointInterval = time.Minute

// errEnded is returned to goroutines that outlive their function.
var errEnded = errors.New("the attempt has ended: nothing can be flushed any more")

// runner calls the handlers of one cause. Each gets a copy of the object with the changes of the earlier ones.
type runner struct {
	pass          *pass
	outcomes      *outcomes
	workingCopy   map[string]any       // the object for the next handler
	encodedObject *jsontext.LazyObject // the same with its text; nil once a handler has changed it
	essence       diffbase.Essence     // the essence of working; nil if it is not built
	budget        *budget              // for the progress of sub-handlers; nil before the first one
}

// invocation is one running function, and the pass that waits for it: for its end, for the time to write earlier
// outcomes, for its requests to write, and for the exit of the operator.
type invocation struct {
	runner   *runner
	handler  *adapters.HandlerChain
	attempt  *execution.Attempt
	interval time.Duration // how long outcomes can stay unwritten; doubled by failed writes
	cancel   context.CancelCauseFunc
	log      logr.Logger   // the logger of the pass: each call adds its handler
	requests chan func()   // work of the function's goroutine for that of the pass
	done     chan struct{} // closed when requests are not accepted any more

	mu         sync.Mutex     // guards written, which other goroutines read
	latestBody map[string]any // the newest object of the pass
}

// callDueHandlers calls the due handlers that the lifecycle picks.
func (p *pass) callDueHandlers(ctx context.Context, selected []*adapters.HandlerChain) error {
	r := &runner{pass: p, outcomes: p.outcomes, workingCopy: p.object.body, encodedObject: p.object.lazyBody}
	// With copied memory, the object that handlers see is not the one that the essence was built of.
	if p.object.foreign == nil {
		r.essence = p.outcomes.cause.New
	}
	// Handlers see the unwritten changes of a former pass.
	for _, a := range p.outcomes.attempts {
		r.adoptChanges(a, a.UnwrittenTransforms())
	}
	// The chains decide which handlers are due, and the lifecycle which of these to call.
	due, err := r.dueHandlers(ctx, selected)
	if err != nil {
		return err
	}
	picked, err := execution.PickHandlers(ctx, p.handling.Lifecycle, due)
	if err != nil {
		return err
	}
	p.recordDecisions(selected, due, picked)
	if p.preview != nil {
		p.preview.noteSelected(p.outcomes.cause, selected, p.outcomes.state, picked)
		return nil
	}
	// The operator can exit, or a deletion can begin, between two calls.
	for _, state := range picked {
		if p.isInterrupted(ctx) {
			break
		}
		at := slices.IndexFunc(selected, func(h *adapters.HandlerChain) bool { return h.Description.ID == state.ID })
		call := &invocation{
			runner: r, handler: selected[at],
			attempt:    r.newAttempt(selected[at], state, r.workingCopy, r.encodedObject),
			latestBody: p.object.body,
		}
		// Keep the state before the call, to detect a change by the call.
		before, then := r.workingCopy, r.essence
		if err := call.runFunction(ctx); err != nil || p.object.gone {
			return err
		}
		if p.ownCalls != nil {
			p.noteOwnCall(r, call.attempt, before, then)
		}
	}
	if p.ownCalls != nil {
		p.countLoop(ctx)
	}
	return nil
}

// recordDecisions records the decisions in the journal before the first call, which can take long.
func (p *pass) recordDecisions(selected []*adapters.HandlerChain, due, picked []*execution.HandlerState) {
	if p.draft == nil {
		return
	}
	for _, h := range selected {
		is := func(state *execution.HandlerState) bool { return state.ID == h.Description.ID }
		if slices.ContainsFunc(due, is) && !slices.ContainsFunc(picked, is) {
			p.draft.AddVerdict(h.Description, execution.Stop{Adapter: "Lifecycle", Reason: execution.NotPicked})
		}
	}
	p.draft.AddToJournal()
}

// dueHandlers returns the states of the handlers that can be called now, each once, in the order of registration.
func (r *runner) dueHandlers(
	ctx context.Context, selected []*adapters.HandlerChain,
) (due []*execution.HandlerState, err error) {
	for _, handler := range selected {
		state := r.outcomes.state.StateOf(handler.Description.ID)
		ok, err := handler.IsDue(ctx, state.Account(), r.pass.handling.Now, r.pass.draft.VerdictFunc())
		if err != nil {
			return nil, err
		}
		// Several registrations of one function share a state: call it once.
		if ok && !slices.Contains(due, state) {
			due = append(due, state)
		}
	}
	return due, nil
}

// isInterrupted reports whether the remaining handlers must wait: for the next process, or for the deletion that the
// answer to our own write has revealed.
func (p *pass) isInterrupted(ctx context.Context) bool {
	p.exiting = p.exiting || !p.handling.MayBegin(ctx)
	return p.exiting || !p.outcomes.cause.Deleting && patching.IsBeingDeleted(p.object.body) || p.isPausedSince()
}

// newAttempt prepares a call on a copy of the object, with the former attempts of the handler. An object with a text is
// only copied on request: most functions decode the text into their own type.
func (r *runner) newAttempt(
	handler *adapters.HandlerChain, state *execution.HandlerState, object map[string]any, given *jsontext.LazyObject,
) *execution.Attempt {
	h := r.pass.handling
	if given.IsEncoded() {
		object = nil
	}
	a := h.NewAttempt(handler.Description, r.outcomes.cause, object)
	// The pass writes the changes later, and decides the outcome then.
	a.Now, a.Account, a.Due, a.IsOutcomeDeferred = h.Now, state.Account(), true, true
	a.Call.EncodedObject = given
	return a
}

// concludeAttempt applies the outcome of an attempt. Later handlers see its changes.
func (r *runner) concludeAttempt(a *execution.Attempt) error {
	r.pass.journalEntry().RecordAttempt(a)
	if r.pass.object.gone { // nothing will be written: report the outcome now
		a.ReportDecided()
		return nil
	}
	if err := r.outcomes.applyOutcome(a, r.pass.handling.Now()); err != nil {
		return err
	}
	if r.pass.handling.Waits != nil {
		r.pass.noteWait(a)
	}
	r.adoptChanges(a, a.AllTransforms())
	return nil
}

// adoptChanges applies the changes of an attempt to the object for later handlers. Changes that do not fit are ignored
// here: the write reports them.
func (r *runner) adoptChanges(a *execution.Attempt, transforms []patching.Transform) {
	patch := patching.Patch{Transforms: patching.ContainPanics(transforms)}
	err := patch.AddResult(a.Call.Handler.ID, a.ResultToWrite(), a.Call.Handler.FormerIDs...)
	if err != nil || patch.IsEmpty() {
		return
	}
	if changed, err := patch.ApplyTo(r.workingCopy); err == nil {
		r.workingCopy, r.encodedObject, r.essence = changed, nil, nil
		r.outcomes.workingCopy = changed
	}
}

// runFunction calls the function, and serves its requests until it returns.
func (i *invocation) runFunction(ctx context.Context) error {
	pass := i.runner.pass
	i.requests, i.done = make(chan func()), make(chan struct{})
	defer close(i.done)
	i.interval = pass.handling.Checkpoint
	// separate from [invocation.serveUntilDone], which can be busy with a write
	running, cancel := adapters.FunctionContext(ctx)
	defer cancel(nil)
	i.cancel, i.log = cancel, logf.FromContext(ctx)
	i.prepareCall(i.handler, i.attempt, nil)
	i.serveUntilDone(ctx, i.handler.Start(running, i.attempt))
	pass.exiting = pass.exiting || !pass.handling.MayBegin(ctx) // the function can notice the exit first
	return i.runner.concludeAttempt(i.attempt)
}

// prepareCall sets the fields of a call that let it write, run sub-handlers and read the newest object.
func (i *invocation) prepareCall(handler *adapters.HandlerChain, a *execution.Attempt, ancestors []string) {
	a.Call.Subs = &subHandlers{
		invocation: i, runner: i.runner, handler: handler, parent: a,
		// The slice is clipped: siblings must not overwrite each other's ancestors.
		ancestors: append(slices.Clip(ancestors), handler.Description.ID),
	}
	a.Call.LatestState = i
	a.FlushNow = func(ctx context.Context) error { return i.flushNow(ctx, a) }
}

// serveUntilDone serves the running function on the goroutine of the pass: only this goroutine uses the object and the
// outcomes, so they do not need a lock.
func (i *invocation) serveUntilDone(ctx context.Context, done <-chan struct{}) {
	exit := ctx.Done()
	// The timer is renewed after each event, as each can change the oldest outcome.
	due, stopTimer := i.checkpointTimer()
	defer func() { stopTimer() }()
	for {
		select {
		case <-done:
			return
		case <-due:
			i.writeCheckpoint(ctx)
		case act := <-i.requests:
			act()
		// Save the outcomes now: the function can ignore the cancellation until the process is killed.
		case <-exit:
			exit, i.runner.pass.exiting = nil, true
			i.writeCheckpoint(ctx)
		}
		stopTimer()
		due, stopTimer = i.checkpointTimer()
	}
}

// checkpointTimer returns a timer for the time when the oldest outcome must be written; it never fires if there is
// none.
func (i *invocation) checkpointTimer() (<-chan time.Time, func() bool) {
	pending := i.runner.outcomes.unwrittenSince
	if pending.IsZero() || i.runner.pass.object.gone {
		return nil, func() bool { return true }
	}
	timer := time.NewTimer(max(0, i.interval-i.runner.pass.handling.Now().Sub(pending)))
	return timer.C, timer.Stop
}

// writeCheckpoint saves the outcomes of earlier handlers while another one is running. A failure does not disturb that
// handler: the last write of the pass includes everything, or fails visibly.
func (i *invocation) writeCheckpoint(ctx context.Context) {
	pass, handled := i.runner.pass, i.runner.outcomes
	if handled.unwrittenSince.IsZero() || pass.object.gone {
		return
	}
	if err := pass.saveOutcomes(ctx, handled); err != nil {
		logf.FromContext(ctx).Error(err, "Failed to write progress while a handler is running; retrying later")
		// Start a new, longer interval.
		handled.unwrittenSince, i.interval = pass.handling.Now(), min(2*i.interval, maxCheckpointInterval)
	}
	i.noteWritten()
	// Without its object, the function need not finish.
	if pass.object.gone {
		i.cancel(execution.ErrDeleted)
	}
}

// runOnPass runs act on the goroutine of the pass, and waits for it. It is called on the function's goroutine. It
// returns errEnded if the function has already returned.
func (i *invocation) runOnPass(act func() error) (err error) {
	finished := make(chan struct{})
	select {
	case i.requests <- func() { defer close(finished); err = act(); i.noteWritten() }:
		<-finished
		return err
	case <-i.done:
		return errEnded
	}
}

// flushNow runs on the function's goroutine. The pass does the writing, so that nothing is written twice.
func (i *invocation) flushNow(ctx context.Context, a *execution.Attempt) error {
	// A cancelled function gets the reason, such as the exit of the operator.
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	// The write can include changes of other handlers, and so must not use the logger of this one.
	return i.runOnPass(func() error { return i.flushChanges(logf.IntoContext(ctx, i.log), a) })
}

// flushChanges writes the changes of the running function together with all unwritten outcomes. If the content is
// refused, the earlier handlers are judged without the function. The function gets the error and keeps its changes:
// they are judged when it ends.
func (i *invocation) flushChanges(ctx context.Context, a *execution.Attempt) error {
	pass, handled := i.runner.pass, i.runner.outcomes
	if pass.object.gone {
		return execution.ErrDeleted
	}
	err := pass.saveOnce(ctx, handled, true, a)
	// Judge the earlier outcomes without this function, then try again.
	if patching.IsContentRefused(err) && len(handled.attempts) > 0 {
		if err = pass.saveOutcomes(ctx, handled); err == nil && !pass.object.gone {
			err = pass.saveOnce(ctx, handled, true, a)
		}
	}
	if pass.object.gone {
		i.cancel(execution.ErrDeleted)
		return execution.ErrDeleted
	}
	if err == nil {
		err = pass.object.statusRefusal // the rest is written, but Flush has failed
	}
	return err
}

// noteWritten makes the state after a write visible to the running function. It runs on the goroutine of the pass.
func (i *invocation) noteWritten() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.latestBody = i.runner.pass.object.body
}

// Latest returns the newer one of the cached object and the answer to the last write of the pass. If the
// cache has lost the object, it cancels the function, which could otherwise wait forever for a change of the object.
func (i *invocation) Latest(key types.NamespacedName, uid types.UID) map[string]any {
	i.mu.Lock()
	written := i.latestBody
	i.mu.Unlock()
	cache := i.runner.pass.handling.Cache
	if cache == nil {
		return written
	}
	cached := cache.Latest(key, uid)
	if cached == nil {
		i.cancel(execution.ErrDeleted)
	}
	return newerBody(cached, written)
}
