package changes

import (
	"context"
	"time"

	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/cause"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
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
