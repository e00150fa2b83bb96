package changes

import (
	"context"
	"maps"
	"slices"

	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/controls"
	"github.com/kopf-runtime/kopf-runtime/internal/execution"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/internal/patching"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/storage"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

// closeOrContinue writes the unwritten outcomes, and closes the cause if all handlers are finished.
func (p *pass) closeOrContinue(ctx context.Context) error {
	if p.preview != nil && p.handling.isReadOnly() {
		return nil
	}
	p.outcomes.callsEnded = true
	err := p.saveOutcomes(ctx, p.outcomes)
	if err == nil && !p.object.gone && p.outcomes.isKept() {
		p.reportKept(ctx, p.outcomes)
	}
	// The resume is finished even if the write fails: the outcomes in memory are written later.
	again := p.outcomes.observation.replacesCause && p.outcomes.observation.request.Mode == controls.Failed
	if p.outcomes.state.AllFinished() && !p.object.gone && !again {
		p.memory.Initial = false
	}
	return err
}

// saveOutcomes writes the present outcomes with the changes and results of the attempts. Outcomes that cannot be
// written are kept in memory, so that their handlers are not called again.
func (p *pass) saveOutcomes(ctx context.Context, handled *outcomes) error {
	err := p.saveOnce(ctx, handled, true)
	if err != nil {
		err = p.settleRefusal(ctx, handled, err)
	}
	// Either everything was written, or the next pass retries all of it.
	p.memory.unwrittenOutcomes = nil
	if err != nil {
		p.memory.unwrittenOutcomes = handled
	}
	return err
}

// settleRefusal writes the outcomes without the refused contents, if a refusal was the reason of the error. A status
// that is refused without the fault of a handler does not prevent the rest. No failure of the status keeps the
// finalizer.
func (p *pass) settleRefusal(ctx context.Context, handled *outcomes, err error) error {
	if !patching.IsContentRefused(err) {
		return err
	}
	ofStatus := p.object.statusRefusal != nil
	// Find the handlers at fault, and fail them.
	err = p.failRefused(ctx, handled, err)
	// No handler is at fault, or the object must be released: give up the status.
	if ofStatus && (patching.IsContentRefused(err) || handled.releasesFinalizer()) {
		err = nil
	}
	// This time, a refused status does not prevent the rest.
	if err == nil && !p.object.gone {
		err = p.saveOnce(ctx, handled, false)
	}
	if patching.IsContentRefused(err) && handled.releasesFinalizer() {
		err = p.releaseAlone(ctx, handled, err)
	}
	return err
}

// releaseAlone removes the finalizer and writes nothing else, after all other writes were refused.
func (p *pass) releaseAlone(ctx context.Context, handled *outcomes, refusal error) error {
	logf.FromContext(ctx).Error(
		refusal, "API server refused the last write of a deletion; removing the finalizer alone",
	)
	err := p.object.sendTransform(ctx, patching.AllowDeletion(p.handling.Finalizer))
	if err == nil {
		handled.markWritten()
	}
	return err
}

// saveOnce writes the outcomes and the changes of attempts that are still running. If the status decides, a refusal of
// the status is returned before the rest is written, so that the caller can find the handlers at fault.
func (p *pass) saveOnce(
	ctx context.Context, handled *outcomes, statusDecides bool, running ...*execution.Attempt,
) error {
	p.object.statusRefusal = nil
	attempts := append(slices.Clip(handled.attempts), running...)
	patch := patching.Patch{Merge: map[string]any{}}
	written := make([]int, len(attempts)) // counts, because running functions can add changes meanwhile
	for i, a := range attempts {
		var err error
		if written[i], err = includeAttempt(&patch, a); err != nil {
			return err
		}
	}
	// The patch only removes memory that the object has, so it needs the present object.
	if err := p.object.refreshIfUncertain(ctx); err != nil || p.object.gone {
		return err
	}
	if err := p.composeMemory(ctx, handled, &patch); err != nil {
		return err
	}
	told := handled.getsConditions && p.addConditions(ctx, handled, &patch)
	if err := p.object.writePatch(ctx, patch, statusDecides); err != nil || p.object.gone {
		return err
	}
	if told && p.object.statusRefusal != nil { // judge the changes of the handlers without the conditions
		handled.getsConditions = false
		if err := p.saveOnce(ctx, handled, statusDecides, running...); err != nil {
			return err
		}
		return p.writeConditionsAlone(ctx, handled)
	}
	// A temporary failure of the status is retried, also if our finalizer is gone and others still hold the object.
	if err := p.object.statusRefusal; err != nil && !patching.IsHopeless(err) && !p.object.released {
		return err
	}
	p.logStatusRefusal(ctx, attempts)
	if len(p.object.restoredFields) > 0 {
		p.logRestored(ctx, attempts)
	}
	if told {
		p.noteConditionsWritten(ctx, handled)
	}
	for i, a := range attempts {
		a.MarkWritten(written[i])
	}
	if err := p.checkMemoryKept(handled, patch.Merge); err != nil { // a write only counts if the server keeps it
		return err
	}
	if handled.leavesFilters && !p.object.released {
		if err := p.takeBackOwnPatches(ctx, handled); err != nil || p.object.gone {
			return err
		}
	}
	if handled.workingCopy != nil || p.memory.ownWrites != nil {
		p.noteOwnWrite(handled)
	}
	handled.markWritten()
	p.noteRemembered(handled)
	return nil
}

// noteRemembered keeps a copy of the memory on the object, in case another client removes it.
func (p *pass) noteRemembered(handled *outcomes) {
	if handled.canClose() {
		p.memory.HandledState.HasFailed = handled.hasFailed
	}
	if handled.state.AllFinished() && handled.observation.isRequested() {
		p.memory.answeredRequest = handled.observation.request.Value
	}
	switch {
	case !handled.canClose():
		if handled.essenceToStore != nil {
			p.noteFailedConfiguration(handled)
		}
		p.memory.openRecords = openRecords{p.handling, handled.state.StoredRecords()}
	case handled.essenceToStore != nil:
		p.memory.openRecords, p.memory.HandledState.Hash = openRecords{}, cause.HashEssence(handled.essenceToStore)
	default:
		p.memory.openRecords = openRecords{}
	}
}

// includeAttempt adds the changes and the result of the attempt to the patch. It returns the number of changes.
func includeAttempt(patch *patching.Patch, a *execution.Attempt) (int, error) {
	remembered := a.UnwrittenTransforms()
	patch.Transforms = append(patch.Transforms, patching.ContainPanics(remembered)...)
	return len(remembered), patch.AddResult(a.Call.Handler.ID, a.ResultToWrite(), a.Call.Handler.FormerIDs...)
}

// composeMemory adds the memory of the object to the patch.
func (p *pass) composeMemory(ctx context.Context, handled *outcomes, patch *patching.Patch) error {
	if handled.canClose() {
		return p.composeEnd(ctx, handled, patch)
	}
	return p.composeProgress(ctx, handled, patch)
}

// composeEnd adds the end of a cause to the patch: the removal of the records, the last-handled configuration, and the
// removal of the finalizer from an object being deleted.
func (p *pass) composeEnd(ctx context.Context, handled *outcomes, patch *patching.Patch) error {
	o, h, c := &p.object, p.handling, handled.cause
	// The records end with the cause.
	if err := o.ignoreIfDeleting(ctx, handled.state.PurgeAll(h.Progress, patch.Merge, o.storageBody)); err != nil {
		return err
	}
	// Dependents must be released while the object still exists.
	if c.Deleting {
		if err := p.releaseDependents(ctx); err != nil {
			return err
		}
		patch.Transforms = append(patch.Transforms, patching.AllowDeletion(h.Finalizer))
	}
	if err := p.recordFailures(handled, patch); err != nil {
		return err
	}
	o.answerRequest(patch, handled.observation, true)
	if handled.observation.replacesCause {
		handled.essenceToStore, handled.handlersAgree = nil, !handled.observation.edited
		return o.bindMemory(patch)
	}
	// The first successful handler decides: an edit since then follows as an update.
	last := handled.interimEssence
	if last == nil {
		last = c.New
	}
	handled.handlersAgree = cause.EqualEssences(last, c.New)
	// The handlers' own patches can take the object out of all filters.
	if handled.handlersAgree && !c.Deleting && (handled.workingCopy != nil || h.KopfTexts) {
		last = p.withOwnPatches(ctx, handled, last)
	}
	handled.essenceToStore = last
	// An object being deleted with an unreadable essence does not have one here.
	known := !handled.observation.memoryLost && cause.EqualEssences(c.Old, last)
	if last == nil || known || c.Deleting && !o.memoryFits(patch, last) {
		if !patch.IsEmpty() { // the interim essence alone is not worth a write
			h.InterimStorage.PurgeEssence(patch, o.storageBody)
		}
		return nil
	}
	// Bind the configuration to this object, so that copies of the object do not inherit it.
	if err := o.bindMemory(patch); err != nil {
		return err
	}
	if err := o.storeHandled(ctx, patch, last); err != nil {
		return err
	}
	// Neither an object being deleted nor one whose handlers agree needs the interim essence.
	if c.Deleting || handled.handlersAgree {
		h.InterimStorage.PurgeEssence(patch, o.storageBody)
		return nil
	}
	// Other handlers have seen a different configuration than the first one. An update follows. It must also follow if
	// the change is reverted before.
	return o.storeInterimBeside(patch, c.New)
}

// composeProgress adds the memory of an unfinished cause: the records, and the essence that the first successful
// handler saw.
func (p *pass) composeProgress(ctx context.Context, handled *outcomes, patch *patching.Patch) error {
	o, h := &p.object, p.handling
	handled.essenceToStore = nil
	// Records of the former cause are removed with the first write.
	if handled.mustPurge {
		err := handled.state.PurgePassive(h.Progress, patch.Merge, o.storageBody)
		if err := o.ignoreIfDeleting(ctx, err); err != nil {
			return err
		}
	}
	// If an object being deleted cannot store its records, they are kept in this process.
	err := handled.state.StoreChanged(h.Progress, patch.Merge, o.storageBody)
	p.keepRecordsInMemory(handled, err)
	if err := o.ignoreIfDeleting(ctx, err); err != nil {
		return err
	}
	// Too much memory can still fit if the interim essence becomes a digest.
	tooMuch := o.annotationsSize(patch) > storage.AnnotationsLimit
	if handled.interimEssence != nil && (tooMuch || !o.hasInterimOf(patch, handled)) {
		if err := o.storeInterimOf(patch, handled); err != nil {
			return err
		}
	}
	if len(patch.Merge) == 0 { // nothing of ours changes: the binding is not worth a write
		return nil
	}
	// A deletion that is kept does not end, but its handlers do.
	o.answerRequest(patch, handled.observation, handled.isKept())
	p.endFormerFailures(handled, patch)
	// The essence of another cause must not be taken for one of this cause.
	if handled.interimEssence == nil && handled.observation.hasStaleInterim {
		h.InterimStorage.PurgeEssence(patch, o.storageBody)
	}
	// Add lost memory, and the configuration that a failed deletion needs.
	if err := p.addLostMemory(ctx, handled, patch); err != nil {
		return err
	}
	if err := p.addFailedConfiguration(ctx, handled, patch); err != nil {
		return err
	}
	return o.bindMemory(patch)
}

// addLostMemory adds memory that another client has removed. The binding must not be restored alone: without the
// records, finished handlers would be called again; without the last-handled configuration, the object would be a new
// one.
func (p *pass) addLostMemory(ctx context.Context, handled *outcomes, patch *patching.Patch) error {
	if p.object.recordsLost {
		if err := handled.state.StoreUnchanged(p.handling.Progress, patch.Merge, p.object.storageBody); err != nil {
			return err
		}
	}
	if handled.observation.memoryLost && handled.cause.Old != nil {
		return p.object.storeHandled(ctx, patch, handled.cause.Old)
	}
	return nil
}

// keepRecordsInMemory keeps the records in memory if an object being deleted cannot store them, or has malformed ones.
// So the deletion continues, and its retries are counted.
func (p *pass) keepRecordsInMemory(handled *outcomes, failed error) {
	if !handled.cause.Deleting || failed == nil && !p.object.hasUnreadableRecord && p.memory.unstoredRecords == nil {
		return
	}
	if p.memory.unstoredRecords == nil {
		p.memory.unstoredRecords = map[string]progress.Record{}
	}
	maps.Copy(p.memory.unstoredRecords, handled.state.ActiveRecords())
}

// isSettled reports whether the object does not need another pass: the round has finished its work for the observed
// state, and the changes since then, by our own writes or by other clients, do not matter to any handler.
func (p *pass) isSettled() bool {
	o := &p.object
	switch {
	case p.exiting || p.rewriteDelay > 0 || o.gone || o.released || patching.IsBeingDeleted(o.body) ||
		p.handling.Conditions != nil:
		return false // conditions can be retried
	case p.outcomes != nil && (!p.isClosedForAll(p.outcomes) || p.memory.Initial):
		return false // the resume can follow a requested run
	default:
		// Without own writes since the observation, nothing can differ.
		return o.observedBody == nil || p.handling.isAlike(o.observedBody, o.body, o.storedAnnotations)
	}
}

// isClosedForAll reports whether the cause is closed, and its end does not change the decision of any handler.
func (p *pass) isClosedForAll(handled *outcomes) bool {
	return handled.canClose() && handled.handlersAgree && p.handling.Sight != handlers.SeesChange &&
		!slices.ContainsFunc(p.handling.Handlers, func(h *adapters.HandlerChain) bool {
			return h.Description.LeavesField(handled.cause)
		})
}
