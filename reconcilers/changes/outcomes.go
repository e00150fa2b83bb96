package changes

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/utils/ptr"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/cause"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/logging"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/patching"
	"github.com/kopf-runtime/kopf-runtime/storage"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
	"github.com/kopf-runtime/kopf-runtime/storage/diffbase"
)

// outcomes are the results of the handlers of one cause, and what of them the API server does not have yet. If a write
// fails, Memory keeps them as they are, and the next pass writes them.
type outcomes struct {
	by      *Handling // whoever is to write them
	cause   *cause.Cause
	seen    *observation     // what the object remembers, as the pass that writes has found it
	state   *execution.State // the progress of the handlers
	interim diffbase.Essence // what the first successful handler of the cause saw, if any succeeded
	purging bool             // records of former causes are to be removed with the next write
	busy    bool             // the object is being deleted, and something in the background still runs for it
	called  bool             // any handler has been, by this process
	ended   bool             // all that can be done now is done
	tells   bool             // the object is to tell of the handlers
	agreed  bool             // what ends the cause is the essence that all of its handlers have seen
	last    diffbase.Essence // what is stored as handled last when the cause ends
	leaves  bool             // it has own patches that take the object out of all filters
	keeps   bool             // handlers have failed that keep the object: the object they saw is stored as handled last
	working map[string]any   // what the handlers made of the object that they saw; nil if they changed nothing

	attempts []*execution.Attempt // those with something that is not written yet
	pending  time.Time            // since when an outcome waits for its write; zero if none does
}

// retryUnwritten writes what a former pass could not, before anything else is done: no handler is called while its
// outcome could not be kept. It is the same write, only later, whatever has become of the object; then all is looked at
// anew. If that fails again, only a deletion that has begun since goes on: with what is left, which its handlers see.
func (p *pass) retryUnwritten(ctx context.Context, seen *observation, busy bool) (left *outcomes, _ verdict, _ error) {
	kept := p.memory.unwritten
	if kept == nil {
		return nil, goOn, nil
	}
	if overtaken, err := p.overtaken(ctx, kept, seen); err != nil || overtaken {
		return nil, startOver, err // what was dropped may leave a resume to be done
	}
	observed := p.object
	p.outcomes = kept
	err := p.writeAgain(ctx, kept, seen, busy)
	if err == nil {
		p.memory.Initial = p.memory.Initial || kept.cause.Initial && !kept.state.Done()
		if kept.done() {
			p.closed = kept.cause.Reason
		}
		return nil, startOver, nil
	}
	if !seen.cause.Deleting || kept.cause.Deleting {
		return nil, stop, err
	}
	logf.FromContext(ctx).Error(err, "Failed to write former changes; calling the deletion handlers, which see them")
	observed.answer = p.object.answer
	p.object, p.outcomes = observed, nil
	return kept, goOn, nil
}

// overtaken drops what is left of before a pause if another operator has handled the object meanwhile, so that its
// progress and its changes stay: all goes on from these. Without a pause, nobody else handles the object.
func (p *pass) overtaken(ctx context.Context, kept *outcomes, seen *observation) (bool, error) {
	if kept.by == p.handling {
		return false, nil
	}
	same := diff.Equal(asValue(kept.seen.stored), asValue(seen.stored))
	if same {
		var err error
		if same, err = kept.state.Continues(seen.state.Fetch); err != nil {
			return false, &BlockedError{Err: err}
		}
	}
	if same {
		kept.by = p.handling
		return false, nil
	}
	ids := make([]string, 0, len(kept.attempts))
	for _, a := range kept.attempts {
		ids = append(ids, a.Call.Handler.ID)
	}
	logging.Warn(logf.FromContext(ctx), "Another operator has handled the object in the pause; dropping the "+
		"outcomes that could not be written", "handlers", ids)
	kept.decide()
	p.memory.Initial = p.memory.Initial || kept.cause.Initial && !kept.state.Done()
	p.memory.unwritten = nil
	return true, nil
}

func (p *pass) writeAgain(ctx context.Context, kept *outcomes, seen *observation, busy bool) error {
	if !seen.lost && !diff.Equal(asValue(kept.seen.stored), asValue(seen.stored)) {
		// The cause was closed: by that very write, whose answer was lost, or by another process.
		return p.writeChangesAlone(ctx, kept.attempts)
	}
	kept.seen, kept.busy = seen, busy
	return p.save(ctx, kept)
}

// writeChangesAlone writes what handlers of a closed cause wanted. A refusal fails no handler any more.
func (p *pass) writeChangesAlone(ctx context.Context, attempts []*execution.Attempt) error {
	for _, a := range attempts {
		refused, err := p.writeAlone(ctx, a)
		switch {
		case err != nil:
			return err
		case refused != nil:
			logRefused(ctx, a, refused)
			a.Drop()
		case p.object.gone:
			return nil
		}
		a.Decide()
	}
	p.memory.unwritten = nil
	return nil
}

// failRefused finds out whose content was refused, by writing that of each attempt alone, and makes that the failure of
// its handler. If no content is refused alone, the refusal of the whole remains.
func (p *pass) failRefused(ctx context.Context, handled *outcomes, refusal error) error {
	for _, a := range handled.attempts {
		if len(a.Remembered()) == 0 && a.Result() == nil {
			continue
		}
		switch refused, err := p.writeAlone(ctx, a); {
		case err != nil || p.object.gone:
			return err
		case refused != nil:
			refusal = nil
			p.reject(ctx, handled, a, refused)
		}
	}
	return refusal
}

// writeAlone writes the changes and the result of one attempt, and nothing else. If the content is refused, or the part
// of it that goes to the status, it returns that refusal apart from other errors.
func (p *pass) writeAlone(ctx context.Context, a *execution.Attempt) (refused, err error) {
	var patch patching.Patch
	written, err := include(&patch, a)
	if err != nil {
		return nil, err
	}
	err = p.object.send(ctx, patch)
	switch {
	case patching.ContentRefused(err):
		return err, nil
	case err != nil || p.object.gone:
		return nil, err
	case patching.ContentRefused(p.object.refusal):
		return p.object.refusal, nil
	}
	p.logStatusRefusal(ctx, []*execution.Attempt{a})
	a.Written(written)
	return nil, nil
}

// logStatusRefusal logs whose status is lost by a write that was done without it.
func (p *pass) logStatusRefusal(ctx context.Context, attempts []*execution.Attempt) {
	if p.object.refusal == nil {
		return
	}
	ids := make([]string, 0, len(attempts))
	for _, a := range attempts {
		ids = append(ids, a.Call.Handler.ID)
	}
	logf.FromContext(ctx).Error(p.object.refusal, "API server refused the status; writing the rest, and "+
		"dropping what the handlers set in the status", "handlers", ids)
}

func logRefused(ctx context.Context, a *execution.Attempt, refusal error) {
	var misfit *patching.TransformError
	log, id := logf.FromContext(ctx), a.Call.Handler.ID
	if errors.As(refusal, &misfit) {
		log.Error(refusal, "A patch of a handler failed on the object as it is by now; writing nothing of the handler",
			"handler", id)
		return
	}
	log.Error(refusal, "API server refused the changes of a handler", "handler", id)
}

// reject drops the changes of an attempt. If the attempt had succeeded, it has failed now: counted, delayed and limited
// like any other.
//
// A deletion does not wait for changes that can never be written: a refused status, and what is too large, is dropped,
// and the handler has succeeded.
func (p *pass) reject(ctx context.Context, handled *outcomes, a *execution.Attempt, refusal error) {
	logRefused(ctx, a, refusal)
	a.Drop()
	handled.working = nil // it has changes that are not made
	waived := handled.cause.Deleting && (p.object.refusal != nil || patching.TooLarge(refusal))
	if a.Call.Cause != handled.cause || !a.Outcome.Final || a.Outcome.Err != nil || waived {
		return
	}
	p.revise(handled, a, a.Limits.Judge(fmt.Errorf("writing the changes of the handler: %w", refusal)))
	if root := a.Call.Handler.Root; root != "" && !a.Outcome.Final {
		p.reopen(handled, root, a)
	}
	if found, err := handled.success(); err == nil && found == nil {
		handled.interim = nil
	}
}

// revise replaces the outcome of an attempt that had succeeded.
func (p *pass) revise(handled *outcomes, a *execution.Attempt, decided execution.Outcome) {
	decided.Trace, decided.Subrefs = a.Call.Trace, a.Outcome.Subrefs
	a.Outcome = decided
	handled.state.Revise(a.Call.Handler.ID, a.Previous, decided, p.handling.Now())
	a.Decide()
	p.noted().Attempt(a)
}

// reopen lets the handlers that have run this sub-handler wait for it: it is to be called again, by them.
func (p *pass) reopen(handled *outcomes, root string, sub *execution.Attempt) {
	for _, a := range handled.attempts {
		id := a.Call.Handler.ID
		runs := id == root || a.Call.Handler.Root == root && strings.HasPrefix(sub.Call.Handler.ID, id+"/")
		if runs && a != sub && a.Call.Cause == sub.Call.Cause && a.Outcome.Final && a.Outcome.Err == nil {
			p.revise(handled, a, a.Limits.Await(&execution.PendingError{Delay: ptr.Deref(sub.Outcome.Delay, 0)}))
		}
	}
}

// restoreProgress selects the handlers of the cause, and takes up their progress where it was left. What former
// outcomes have left to be written goes along.
func (p *pass) restoreProgress(
	ctx context.Context, seen *observation, busy bool, left *outcomes,
) ([]*adapters.Handler, error) {
	selected, err := adapters.Select(ctx, p.handling.Handlers, seen.cause, p.look.Teller())
	if err != nil {
		return nil, filterError(err)
	}
	state := seen.state
	state.Select(adapters.IDs(selected), string(seen.cause.Reason), p.handling.Now())
	state.Compact, state.KopfTexts = p.handling.CompactSubs, p.handling.KopfTexts
	restored := &outcomes{
		by: p.handling, cause: seen.cause, seen: seen, state: state, interim: seen.interim, busy: busy,
	}
	if p.handling.Conditions != nil {
		if restored.tells, err = p.tells(ctx, seen.cause); err != nil {
			return nil, err
		}
	}
	if left != nil {
		restored.attempts = left.attempts
	}
	p.outcomes = restored
	if state.Superseding() {
		restored.purging = p.supersede(ctx, state, seen.cause.Reason)
	}
	for _, handler := range selected {
		if h := state.Handler(handler.Description.ID); h.Awaits() {
			p.wake(seen.cause, handler.Description, h)
		}
	}
	if p.own != nil {
		p.holdLoops(selected, state)
	}
	found, err := restored.success()
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
func (p *pass) supersede(ctx context.Context, state *execution.State, reason cause.Reason) (leftovers bool) {
	present, extras := state.Counts()
	log := logf.FromContext(ctx)
	for former, counts := range extras {
		log.Info("Superseding the progress of a former cause", "former", storage.Excerpt(former), "reason", reason,
			"succeeded", counts.Success,
			"failed", counts.Failure, "unfinished", counts.Running, "shared", present.Running)
		p.look.Dropped("the unfinished " + storage.Excerpt(former) + " is superseded by this " + string(reason))
	}
	return state.Repurpose(string(reason))
}

// success finds one of a handler of the cause.
func (o *outcomes) success() (*success, error) { return findSuccess(o.state, o.seen.state.Fetch) }

// conclude takes the outcome of an attempt into account.
func (o *outcomes) conclude(a *execution.Attempt, now time.Time) error {
	id := a.Call.Handler.ID
	a.Previous = *o.state.Handler(id)
	if err := o.state.Conclude(id, a.Outcome, now); err != nil {
		return err
	}
	o.attempts, o.called = append(o.attempts, a), true
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
	o.decide()
	o.attempts, o.pending, o.purging = nil, time.Time{}, false
}

// decide reports the outcomes of the attempts as they are now: nothing can change them any more.
func (o *outcomes) decide() {
	for _, a := range o.attempts {
		a.Decide()
	}
}

// done tells whether the cause can be closed.
func (o *outcomes) done() bool { return o.state.Done() && !o.busy && !o.isKept() }

// isKept reports whether the deletion has failed permanently: all handlers are finished, and some of them keep the
// object.
func (o *outcomes) isKept() bool { return o.cause.Deleting && o.state.Done() && len(o.holders()) > 0 }

// releases tells whether the next write removes our finalizer from an object that is being deleted.
func (o *outcomes) releases() bool { return o.cause.Deleting && o.done() }
