package changes

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/utils/ptr"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/execution"
	"github.com/kopf-runtime/kopf-runtime/internal/logging"
	"github.com/kopf-runtime/kopf-runtime/internal/patching"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/storage"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

// retryUnwritten writes the outcomes that a former pass could not write. It runs before any handler is called, as the
// outcome of a handler must not be lost. The write is the same as before, for any present state of the object, and
// the object is observed again after it. If the write fails again, the pass ends with the error. The exception is a
// deletion that has begun since: its handlers are called, and see the unwritten changes.
func (p *pass) retryUnwritten(ctx context.Context, seen *observation, busy bool) (left *outcomes, _ verdict, _ error) {
	kept := p.memory.unwrittenOutcomes
	if kept == nil {
		return nil, continuePass, nil
	}
	if overtaken, err := p.dropIfOvertaken(ctx, kept, seen); err != nil || overtaken {
		return nil, restartPass, err // a resume can be left to do
	}
	// The write changes the object of the pass. Keep the observed one for the deletion handlers.
	observed := p.object
	p.outcomes = kept
	err := p.retryWrite(ctx, kept, seen, busy)
	if err == nil {
		// the resume is unfinished
		p.memory.Initial = p.memory.Initial || kept.cause.Initial && !kept.state.AllFinished()
		// The metrics count the end of the change in this pass.
		if kept.canClose() {
			p.result.ClosedReason = kept.cause.Reason
		}
		return nil, restartPass, nil
	}
	// Only a deletion that began after the outcomes can continue.
	if !seen.cause.Deleting || kept.cause.Deleting {
		return nil, finishPass, err
	}
	logf.FromContext(ctx).Error(err, "Failed to write former changes; calling the deletion handlers, which see them")
	observed.answer = p.object.answer // the answer stays the newest one of the API server
	p.object, p.outcomes = observed, nil
	return kept, continuePass, nil
}

// dropIfOvertaken drops the outcomes from before a pause if another operator has handled the object during the pause:
// that progress is newer. After a takeover, it drops them in any case: the other process may have called the handlers
// without a record. Without a pause, no other operator handles the object.
func (p *pass) dropIfOvertaken(ctx context.Context, kept *outcomes, seen *observation) (bool, error) {
	if kept.handling == p.handling {
		return false, nil
	}
	// If neither the configuration nor the records differ, no other operator has continued from there.
	same := kept.handling.Takeovers == p.handling.Takeovers &&
		cause.EqualEssences(kept.observation.lastHandled, seen.lastHandled)
	if same {
		var err error
		if same, err = kept.state.ContinuesRecords(seen.state.FetchRecord); err != nil {
			return false, &BlockedError{Err: err}
		}
	}
	// Nothing has happened in the pause: this Handling takes over.
	if same {
		kept.handling = p.handling
		return false, nil
	}
	ids := make([]string, 0, len(kept.attempts))
	for _, a := range kept.attempts {
		ids = append(ids, a.Call.Handler.ID)
	}
	logging.Warn(logf.FromContext(ctx), "Another operator has acted in the pause; dropping the outcomes that "+
		"could not be written", "handlers", ids)
	kept.reportDecided()
	p.memory.Initial = p.memory.Initial || kept.cause.Initial && !kept.state.AllFinished()
	p.memory.unwrittenOutcomes = nil
	return true, nil
}

// retryWrite writes the outcomes of a former pass, or only their changes if the cause was closed meanwhile.
func (p *pass) retryWrite(ctx context.Context, kept *outcomes, seen *observation, busy bool) error {
	before, now := cause.EssenceValue(kept.observation.lastHandled), cause.EssenceValue(seen.lastHandled)
	closed := !seen.memoryLost && !diff.Equal(before, now)
	if closed || kept.observation.replacesCause && p.object.hasAnswered(kept.observation.request) {
		// The cause was closed: by this very write, if its answer was lost, or by another process.
		return p.writeChangesAlone(ctx, kept.attempts)
	}
	// The outcomes are composed against the object that this pass has observed.
	again := *seen
	again.control = kept.observation.control // another request can have come since: it is not handled yet
	kept.observation, kept.hasRunningBackground = &again, busy
	return p.saveOutcomes(ctx, kept)
}

// writeChangesAlone writes the changes of handlers whose cause is closed. A refused change is dropped: the handler is
// finished, and cannot fail any more.
func (p *pass) writeChangesAlone(ctx context.Context, attempts []*execution.Attempt) error {
	for _, a := range attempts {
		refused, err := p.writeAttemptAlone(ctx, a)
		switch {
		case err != nil:
			return err
		case refused != nil:
			logRefused(ctx, a, refused)
			a.DropUnwritten()
		case p.object.gone:
			return nil
		}
		a.ReportDecided()
	}
	p.memory.unwrittenOutcomes = nil
	return nil
}

// failRefused finds the attempts whose content was refused, by writing each attempt separately, and fails their
// handlers. If none is refused separately, the error of the whole write remains.
func (p *pass) failRefused(ctx context.Context, handled *outcomes, refusal error) error {
	for _, a := range handled.attempts {
		// An attempt without changes cannot be at fault.
		if len(a.UnwrittenTransforms()) == 0 && a.ResultToWrite() == nil {
			continue
		}
		switch refused, err := p.writeAttemptAlone(ctx, a); {
		case err != nil || p.object.gone:
			return err
		case refused != nil:
			refusal = nil
			p.rejectChanges(ctx, handled, a, refused)
		}
	}
	return refusal
}

// writeAttemptAlone writes the changes and the result of one attempt. It returns a refusal of its content, in the
// object or in the status, separately from other errors.
func (p *pass) writeAttemptAlone(ctx context.Context, a *execution.Attempt) (refused, err error) {
	var patch patching.Patch
	written, err := includeAttempt(&patch, a)
	if err != nil {
		return nil, err
	}
	err = p.object.sendPatch(ctx, patch)
	switch {
	case patching.IsContentRefused(err):
		return err, nil
	case err != nil || p.object.gone:
		return nil, err
	case patching.IsContentRefused(p.object.statusRefusal):
		return p.object.statusRefusal, nil
	}
	p.logStatusRefusal(ctx, []*execution.Attempt{a})
	a.MarkWritten(written)
	return nil, nil
}

// logStatusRefusal logs the handlers whose status changes were dropped by a write.
func (p *pass) logStatusRefusal(ctx context.Context, attempts []*execution.Attempt) {
	if p.object.statusRefusal == nil {
		return
	}
	ids := make([]string, 0, len(attempts))
	for _, a := range attempts {
		ids = append(ids, a.Call.Handler.ID)
	}
	logf.FromContext(ctx).Error(p.object.statusRefusal, "API server refused the status; writing the rest, and "+
		"dropping what the handlers set in the status", "handlers", ids)
}

// logRefused logs why the changes of a handler were dropped: the patch does not fit the object, or was refused.
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

// rejectChanges drops the changes of an attempt. If the attempt had succeeded, it has failed now: it is counted,
// delayed and limited like any failure.
//
// A deletion does not wait for changes that can never be written. If the status is refused, or the content is too
// large, the changes are dropped and the handler stays successful.
func (p *pass) rejectChanges(ctx context.Context, handled *outcomes, a *execution.Attempt, refusal error) {
	logRefused(ctx, a, refusal)
	a.DropUnwritten()
	handled.workingCopy = nil // it includes changes that are not made
	waived := handled.cause.Deleting && (p.object.statusRefusal != nil || patching.IsTooLarge(refusal))
	// Only an attempt of this cause that had succeeded can turn into a failure.
	if a.Call.Cause != handled.cause || !a.Outcome.Final || a.Outcome.Err != nil || waived {
		return
	}
	p.reviseOutcome(handled, a, a.Limits.OutcomeOf(fmt.Errorf("writing the changes of the handler: %w", refusal)))
	// The parent handler has counted the sub-handler as finished.
	if root := a.Call.Handler.Root; root != "" && !a.Outcome.Final {
		p.reopenAncestors(handled, root, a)
	}
	// Without a success, the interim essence does not belong to any handler.
	if found, err := handled.recordedSuccess(); err == nil && found == nil {
		handled.interimEssence = nil
	}
}

// reviseOutcome replaces the outcome of an attempt that had succeeded.
func (p *pass) reviseOutcome(handled *outcomes, a *execution.Attempt, decided execution.Outcome) {
	// The trace and the sub-handlers belong to the attempt, and stay.
	decided.Trace, decided.Subrefs = a.Call.Trace, a.Outcome.Subrefs
	a.Outcome = decided
	handled.state.ReviseOutcome(a.Call.Handler.ID, a.PreviousState, decided, p.handling.Now())
	a.ReportDecided()
	p.journalEntry().RecordAttempt(a)
}

// reopenAncestors makes the ancestors of the sub-handler pending again: they have to run it again.
func (p *pass) reopenAncestors(handled *outcomes, root string, sub *execution.Attempt) {
	for _, a := range handled.attempts {
		id := a.Call.Handler.ID
		// These are the registered handler, and the sub-handlers between the two.
		runs := id == root || a.Call.Handler.Root == root && strings.HasPrefix(sub.Call.Handler.ID, id+"/")
		if runs && a != sub && a.Call.Cause == sub.Call.Cause && a.Outcome.Final && a.Outcome.Err == nil {
			p.reviseOutcome(handled, a,
				a.Limits.PendingOutcome(&execution.PendingError{Delay: ptr.Deref(sub.Outcome.Delay, 0)}))
		}
	}
}

// restoreProgress selects the handlers of the cause, and restores their progress. The unwritten attempts of former
// outcomes are added.
func (p *pass) restoreProgress(
	ctx context.Context, seen *observation, busy bool, left *outcomes,
) ([]*adapters.HandlerChain, error) {
	// Select the handlers, and their states for this cause.
	selected, err := p.selectHandlers(ctx, seen)
	if err != nil {
		return nil, filterError(err)
	}
	state := seen.state
	state.SelectHandlers(adapters.HandlerIDs(selected), string(seen.cause.Reason), p.handling.Now())
	state.Compact, state.KopfTexts = p.handling.CompactSubs, p.handling.KopfTexts
	restored := &outcomes{
		handling: p.handling, cause: seen.cause, observation: seen, state: state, interimEssence: seen.interimEssence,
		hasRunningBackground: busy,
	}
	if p.handling.Conditions != nil {
		if restored.getsConditions, err = p.getsConditions(ctx, seen.cause); err != nil {
			return nil, err
		}
	}
	// The deletion handlers see the unwritten changes of the former cause.
	if left != nil {
		restored.attempts = left.attempts
	}
	p.outcomes = restored
	// Records of another purpose belong to a former cause.
	if state.IsSuperseding() {
		restored.mustPurge = p.supersedeProgress(ctx, state, seen.cause.Reason)
	}
	// An awaited child can be ready by now.
	for _, handler := range selected {
		if h := state.StateOf(handler.Description.ID); h.AwaitsChild() {
			p.wakeIfReady(seen.cause, handler.Description, h)
		}
	}
	// Only calls that our own writes cause can form a loop.
	if p.ownCalls != nil {
		p.holdLoops(selected, state)
	}
	found, err := restored.recordedSuccess()
	if err != nil {
		return nil, &BlockedError{Err: err}
	}
	// The interim essence belongs to the successful handlers of the cause. Without any, it does not count.
	if found == nil {
		restored.interimEssence = nil
	}
	return selected, nil
}

// supersedeProgress moves the handlers that both causes share to the new one, and drops the others. It returns true if
// records of dropped handlers remain.
func (p *pass) supersedeProgress(ctx context.Context, state *execution.State, reason cause.Reason) (leftovers bool) {
	present, extras := state.CountByPurpose()
	log := logf.FromContext(ctx)
	for former, counts := range extras {
		log.Info("Superseding the progress of a former cause", "former", storage.TextExcerpt(former), "reason", reason,
			"succeeded", counts.Success,
			"failed", counts.Failure, "unfinished", counts.Running, "shared", present.Running)
		p.draft.NoteDropped(
			"the unfinished " + storage.TextExcerpt(former) + " is superseded by this " + string(reason))
	}
	return state.MoveToPurpose(string(reason))
}

// recordedSuccess returns one success of a handler of the cause; nil if there is none.
func (o *outcomes) recordedSuccess() (*success, error) {
	return findSuccess(o.state, o.observation.state.FetchRecord)
}

// applyOutcome applies the outcome of an attempt.
func (o *outcomes) applyOutcome(a *execution.Attempt, now time.Time) error {
	id := a.Call.Handler.ID
	a.PreviousState = *o.state.StateOf(id) // for a revision after a refused write
	if err := o.state.ConcludeAttempt(id, a.Outcome, now); err != nil {
		return err
	}
	o.attempts, o.called = append(o.attempts, a), true
	if o.unwrittenSince.IsZero() {
		o.unwrittenSince = now
	}
	// The first success decides: its handler saw this configuration.
	if o.interimEssence == nil && !o.observation.replacesCause && a.Outcome.Final && a.Outcome.Err == nil {
		o.interimEssence = o.cause.New
	}
	return nil
}
