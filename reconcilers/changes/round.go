package changes

import (
	"context"
	"strings"
	"time"

	"k8s.io/utils/ptr"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/jsontext"
	"github.com/kopf-runtime/kopf-runtime/internal/logging"
)

// maxRequeueDelay is the longest time between two passes over an object with a delayed handler. A wrong clock or an
// edited record can cause any delay, and a running timer does not follow a corrected clock.
const maxRequeueDelay = 24 * time.Hour

// Reconcile makes one pass over the object. The object is shared and not modified. A *BlockedError means that the
// object must change first. Any other error is retried later.
func (h *ChangeHandling) Reconcile(
	ctx context.Context, newest *jsontext.LazyObject, memory *Memory,
) (PassResult, error) {
	body, err := newest.Value()
	if err != nil {
		return PassResult{}, err
	}
	p := &pass{handling: h, memory: memory, object: object{handling: h, memory: memory, body: body, lazyBody: newest}}
	// The decisions of the last round are recorded on every return.
	defer func() { p.draft.AddToJournal(); memory.detachObjects() }()
	for range maxRounds {
		verdict, err := p.runRound(ctx)
		p.result.Settled = err == nil && verdict == finishPass && p.isSettled()
		if err != nil || verdict != restartPass || p.object.gone {
			if p.object.gone { // if a stale cache shows the object again, the pass reads it live first
				p.reportAllDecided()
				*memory = Memory{isLastWriteUncertain: true}
			}
			p.logLongDelays(ctx)
			return p.passResult(), err
		}
	}
	return p.passResult(), errUnsettled
}

// reportAllDecided reports the outcomes of an object that is gone: their writes will never happen.
func (p *pass) reportAllDecided() {
	for _, left := range []*outcomes{p.outcomes, p.memory.unwrittenOutcomes} {
		if left != nil {
			left.reportDecided()
		}
	}
}

// runRound executes the steps of a pass once, for the newest known object. A step that changes the object for the
// following ones returns restartPass. A step that finds the object gone ends the pass.
func (p *pass) runRound(ctx context.Context) (verdict, error) {
	p.outcomes, p.ownCalls, p.rewriteDelay = nil, nil, 0
	if err := p.object.refreshIfUncertain(ctx); err != nil || p.object.gone {
		return finishPass, err
	}
	seen, err := p.observeObject(ctx)
	if err != nil {
		return finishPass, err
	}
	if p.memory.ownWrites != nil {
		p.detectOwnCause(seen.cause)
	}
	p.startEvaluation(seen.cause)
	wanted, err := p.attendBackground(ctx, seen.cause)
	if err != nil {
		return finishPass, err
	}
	unwritten, next, err := p.retryUnwritten(ctx, seen, wanted.hasRunningBackground) // first: no result may be lost
	if next != continuePass || err != nil {
		return next, err
	}
	if next, err := p.checkInterest(ctx, seen, &wanted); next != continuePass || err != nil {
		return next, err
	}
	if next, err := p.restoreLost(ctx, seen, wanted); next != continuePass || err != nil {
		return next, err
	}
	if next, err := p.syncStorages(ctx, seen, wanted); next != continuePass || err != nil {
		return next, err
	}
	if next, err := p.ensureFinalizer(ctx, seen, wanted); next != continuePass || err != nil {
		return next, err
	}
	if next, err := p.dropStaleProgress(ctx, seen, wanted); next != continuePass || err != nil {
		if err == nil && next == finishPass && p.handling.Conditions != nil {
			err = p.updateOutdatedConditions(ctx, seen.cause)
		}
		return next, err
	}
	// Deletion handlers must not run beside background handlers that still use the object.
	if seen.cause.Reason == cause.Delete {
		if p.waitsForBackground = p.awaitsBackground(seen.cause); p.waitsForBackground {
			return finishPass, nil
		}
	}
	selected, err := p.restoreProgress(ctx, seen, wanted.hasRunningBackground, unwritten)
	if err != nil {
		return finishPass, err
	}
	if p.outcomes.isKept() {
		if next, err := p.retryHolders(ctx); next != continuePass || err != nil {
			return next, err
		}
	}
	p.result.DeletionHandled = p.result.DeletionHandled || seen.cause.Reason == cause.Delete
	if err := p.callDueHandlers(ctx, selected); err != nil || p.object.gone {
		return finishPass, err
	}
	return finishPass, p.closeOrContinue(ctx)
}

// startEvaluation starts to collect the decisions of the round.
func (p *pass) startEvaluation(c *cause.Cause) {
	p.draft = p.journalEntry().StartEvaluation(c)
	if p.preview != nil {
		*p.preview = Preview{Cause: c}
	}
}

// passResult returns the result of the pass. The delay is that of the earliest handler, at most the longest sleep.
func (p *pass) passResult() PassResult {
	next := p.result
	next.Gone, next.Released, next.Answer = p.object.gone, p.object.released, p.object.answer
	if p.rewriteDelay > 0 && !p.object.gone {
		next.RequeueAfter = &p.rewriteDelay
	}
	// A deletion that waits for background handlers is unfinished, too.
	if next.HasOpenChange = p.waitsForBackground; p.object.gone || p.outcomes == nil {
		return next
	}
	p.addProgressTo(&next)
	// After the exit or the pause, a new pass continues.
	if p.exiting {
		return next
	}
	for _, delay := range p.outcomes.state.NextDelays(p.handling.Now()) {
		if next.RequeueAfter == nil || delay < *next.RequeueAfter {
			next.RequeueAfter = ptr.To(min(delay, maxRequeueDelay))
		}
	}
	return next
}

// addProgressTo adds the progress of the change to the result of the pass.
func (p *pass) addProgressTo(next *PassResult) {
	handled := p.outcomes
	isKept := handled.isKept()
	next.HasOpenChange = !handled.canClose() && !isKept
	called := false
	for _, h := range handled.state.AllStates() {
		if !h.IsCounted() {
			continue
		}
		called = true
		if !next.HasOpenChange {
			break
		}
		if next.OpenSince.IsZero() || h.Started.Before(next.OpenSince) {
			next.OpenSince = h.Started
		}
		// Only attempts in the future count as waiting.
		if h.IsFinished() || h.IsBlocked() || h.Delayed == nil || !h.Delayed.After(p.handling.Now()) {
			continue
		}
		next.WaitingHandlers = append(next.WaitingHandlers, WaitingHandler{Handler: h.ID, Until: *h.Delayed})
	}
	// Without handlers, there was no change to close.
	if called && !next.HasOpenChange && !isKept {
		next.ClosedReason = handled.cause.Reason
	}
}

// logLongDelays logs once which handlers are delayed beyond the longest sleep. A record can contain such a delay, and
// no other log line would show it.
func (p *pass) logLongDelays(ctx context.Context) {
	ids, until := p.delayedForLong()
	said := strings.Join(ids, " ")
	if said == p.memory.loggedLongDelays {
		return
	}
	p.memory.loggedLongDelays = said
	if said != "" {
		logging.Warn(logf.FromContext(ctx), "Handlers are delayed for more than a day", "handlers", ids, "first", until)
	}
}

// delayedForLong returns the handlers that sleep beyond the longest sleep, and the time when the first of them is due.
func (p *pass) delayedForLong() (ids []string, until time.Time) {
	if p.outcomes == nil {
		return nil, until
	}
	for _, h := range p.outcomes.state.AllStates() {
		if !h.Active || h.IsFinished() || h.Delayed == nil || h.Delayed.Sub(p.handling.Now()) <= maxRequeueDelay {
			continue
		}
		ids = append(ids, h.ID)
		if until.IsZero() || h.Delayed.Before(until) {
			until = *h.Delayed
		}
	}
	return ids, until
}
