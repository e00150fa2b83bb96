package changes

import (
	"context"
	"slices"
	"time"

	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/cause"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/patching"
	"github.com/kopf-runtime/kopf-runtime/storage"
	"github.com/kopf-runtime/kopf-runtime/storage/diffbase"
)

// outcomes are the results of the handlers of one cause, and what of them the API server does not have yet. If a write
// fails, Memory keeps them as they are, and the next pass writes them.
type outcomes struct {
	cause   *cause.Cause
	seen    *observation     // what the object remembers, as the pass that writes has found it
	state   *execution.State // the progress of the handlers
	interim diffbase.Essence // what the first successful handler of the cause saw, if any succeeded
	purging bool             // records of former causes are to be removed with the next write
	busy    bool             // the object is being deleted, and something in the background still runs for it

	attempts []*execution.Attempt // those with something that is not written yet
	pending  time.Time            // since when an outcome waits for its write; zero if none does
}

// restoreProgress selects the handlers of the cause, and takes up their progress where it was left. What former
// outcomes have left to be written goes along.
func (p *pass) restoreProgress(
	ctx context.Context, seen *observation, busy bool, left *outcomes,
) ([]*adapters.Handler, error) {
	selected, err := adapters.Select(ctx, p.handling.Handlers, seen.cause)
	if err != nil {
		return nil, filterError(err)
	}
	state, err := execution.Restore(
		p.object.recordReader(ctx), p.handling.IDs(), idsOf(selected), string(seen.cause.Reason), p.handling.now(),
	)
	if err != nil {
		return nil, &BlockedError{Err: err}
	}
	state.Compact = p.handling.CompactSubs
	restored := &outcomes{cause: seen.cause, seen: seen, state: state, interim: seen.interim, busy: busy}
	if left != nil {
		restored.attempts = left.attempts
	}
	p.outcomes = restored
	if state.Superseding() {
		restored.purging = supersede(ctx, state, seen.cause.Reason)
	}
	found, err := p.object.findSuccess(ctx, state)
	if err != nil {
		return nil, &BlockedError{Err: err}
	}
	if found == nil {
		restored.interim = nil
	}
	return selected, nil
}

// supersede moves the handlers that both causes have to the new one; the rest of the former cause is dropped. It tells
// whether there is such a rest.
func supersede(ctx context.Context, state *execution.State, reason cause.Reason) (leftovers bool) {
	present, extras := state.Counts()
	log := logf.FromContext(ctx)
	for former, counts := range extras {
		log.Info("Progress of a former cause is superseded", "former", storage.Excerpt(former), "reason", reason,
			"succeeded", counts.Success,
			"failed", counts.Failure, "unfinished", counts.Running, "shared", present.Running)
	}
	return state.Repurpose(string(reason))
}

// conclude takes the outcome of an attempt into account.
func (o *outcomes) conclude(a *execution.Attempt, now time.Time) error {
	id := a.Call.Handler.ID
	a.Previous = *o.state.Handler(id)
	if err := o.state.Conclude(id, a.Outcome, now); err != nil {
		return err
	}
	o.attempts = append(o.attempts, a)
	if o.pending.IsZero() {
		o.pending = now
	}
	if o.interim == nil && a.Outcome.Final && a.Outcome.Err == nil {
		o.interim = o.cause.New
	}
	return nil
}

// written notes that the API server has all of it.
func (o *outcomes) written() {
	o.state.Written()
	o.attempts, o.pending, o.purging = nil, time.Time{}, false
}

// done tells whether the cause can be closed.
func (o *outcomes) done() bool { return o.state.Done() && !o.busy }

// ErrDeleted is the cancellation cause of a function whose object is gone, or is another one under the same name.
var ErrDeleted = execution.ErrDeleted

// runner calls handlers of one cause, each on a copy of the object with the changes of those before it.
type runner struct {
	pass     *pass
	outcomes *outcomes
	working  map[string]any // the object as the next handler is to see it
	budget   *budget        // for the progress of sub-handlers; nil as long as there are none
}

// callDueHandlers calls the handlers that are due, as the lifecycle picks them.
func (p *pass) callDueHandlers(ctx context.Context, selected []*adapters.Handler) error {
	r := &runner{pass: p, outcomes: p.outcomes, working: p.object.body}
	for _, a := range p.outcomes.attempts {
		r.working = withChanges(r.working, a, a.Remembered())
	}
	due, err := r.due(ctx, selected)
	if err != nil {
		return err
	}
	for _, state := range p.handling.Lifecycle.Pick(due) {
		if p.interrupted(ctx) {
			break
		}
		at := slices.IndexFunc(selected, func(h *adapters.Handler) bool { return h.Description.ID == state.ID })
		call := &invocation{runner: r, handler: selected[at], attempt: r.attempt(selected[at], state, r.working)}
		if err := call.run(ctx); err != nil || p.object.gone {
			return err
		}
	}
	return nil
}

// due are the states of the handlers that may be called now, each once, in the order of registration.
func (r *runner) due(ctx context.Context, selected []*adapters.Handler) (due []*execution.HandlerState, err error) {
	for _, handler := range selected {
		state := r.outcomes.state.Handler(handler.Description.ID)
		ok, err := handler.IsDue(ctx, state.Account(), r.pass.handling.now)
		if err != nil {
			return nil, err
		}
		if ok && !slices.Contains(due, state) {
			due = append(due, state)
		}
	}
	return due, nil
}

// interrupted tells whether the remaining handlers must wait: for the next process, or for the deletion that our own
// write has brought to light.
func (p *pass) interrupted(ctx context.Context) bool {
	p.exiting = p.exiting || ctx.Err() != nil
	return p.exiting || !p.outcomes.cause.Deleting && patching.BeingDeleted(p.object.body)
}

// attempt is a call to be made on a copy of the object, which continues what is known of the handler.
func (r *runner) attempt(
	handler *adapters.Handler, state *execution.HandlerState, object map[string]any,
) *execution.Attempt {
	h := r.pass.handling
	a := execution.New(handler.Description, r.outcomes.cause, object)
	a.Account, a.Place, a.Now = state.Account(), h.Place, h.now
	a.Limits.Backoff, a.Call.Events = h.Backoff, h.Events
	return a
}

// conclude takes the outcome of an attempt into account. The handlers after it see what it did.
func (r *runner) conclude(a *execution.Attempt) error {
	if r.pass.object.gone {
		return nil
	}
	if err := r.outcomes.conclude(a, r.pass.handling.now()); err != nil {
		return err
	}
	r.working = withChanges(r.working, a, a.Made())
	return nil
}

// withChanges is the object with what an attempt did to it. A function that does not fit it will be judged when it is
// written; here it changes nothing.
func withChanges(object map[string]any, a *execution.Attempt, transforms []patching.Transform) map[string]any {
	patch := patching.Patch{Transforms: patching.Contained(transforms)}
	if err := patch.AddResult(a.Call.Handler.ID, a.Result()); err != nil || patch.Empty() {
		return object
	}
	changed, err := patch.ApplyTo(object)
	if err != nil {
		return object
	}
	return changed
}
