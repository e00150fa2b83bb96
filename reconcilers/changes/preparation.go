package changes

import (
	"context"
	"fmt"

	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/patching"
	"github.com/kopf-runtime/kopf-runtime/internal/storages"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/storage/diffbase"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

// attendBackground starts and stops the background handlers of the object. They can need the finalizer, too.
func (p *pass) attendBackground(ctx context.Context, c *cause.Cause) (wanted interest, err error) {
	if p.handling.Background == nil {
		return interest{}, nil
	}
	wanted.needsFinalizer, wanted.hasRunningBackground, err = p.handling.Background.Supervise(ctx, c)
	return wanted, filterError(err)
}

// awaitsBackground reports whether the deletion handlers must wait for background handlers that are still running.
// Otherwise they would clean up resources in use.
func (p *pass) awaitsBackground(c *cause.Cause) bool {
	h := p.handling
	return h.Background != nil && !h.KopfDeletions && h.Background.DelaysDeletion(c)
}

// checkInterest finds out whether any handler matches the object. While the operator exits or pauses, or the object is
// paused, it stops the pass: nothing new begins.
func (p *pass) checkInterest(ctx context.Context, seen *observation, wanted *interest) (verdict, error) {
	if !p.handling.MayBegin(ctx) {
		p.exiting = true
		return finishPass, nil
	}
	if seen.cause.Paused {
		return finishPass, p.pauseObject(ctx, seen)
	}
	found, err := p.handling.interestIn(ctx, seen.cause, p.draft.VerdictFunc())
	if found.HasChangeHandler {
		p.draft.ClearVerdicts() // the verdicts only concern the interest: the selection follows
	}
	wanted.hasChangeHandler, wanted.needsFinalizer = found.HasChangeHandler, found.NeedsFinalizer ||
		wanted.needsFinalizer || p.hasDependents()
	return continuePass, filterError(err)
}

// interestIn reports the need of the handlers for the object. An object without the field of an update handler counts,
// too: its configuration must be stored, so that the appearance of the field is an update. Kopf treats that change as
// the creation.
func (h *ChangeHandling) interestIn(
	ctx context.Context, c *cause.Cause, tell adapters.VerdictFunc,
) (adapters.ObjectInterest, error) {
	found, err := adapters.InterestIn(ctx, h.Handlers, c, tell)
	// With Kopf's formats, Kopf's behaviour is kept.
	if err == nil && !found.HasChangeHandler && !h.KopfTexts {
		found.HasChangeHandler, err = adapters.AwaitsField(ctx, h.Handlers, c)
	}
	return found, err
}

// hasDependents reports whether other objects must be released before this one is deleted.
func (p *pass) hasDependents() bool {
	return p.handling.Dependents != nil && p.handling.Dependents.HasDependents(p.object.body)
}

// releaseDependents runs last, before the finalizer is removed.
func (p *pass) releaseDependents(ctx context.Context) error {
	if !p.hasDependents() {
		return nil
	}
	if err := p.handling.Dependents.Release(ctx, p.object.body); err != nil {
		// The text is copied, not wrapped: the caller must not take the error for a refusal of the object's own
		// content.
		return fmt.Errorf("releasing what depends on the object: %s", err.Error())
	}
	return nil
}

// releaseObject finishes an object that is being deleted if no changing handler matches it. It removes the records of
// unfinished causes, as other finalizers can hold the object for long. It also removes our finalizer, unless a
// background handler is still running.
func (p *pass) releaseObject(ctx context.Context, seen *observation, busy bool) error {
	patch := patching.Patch{Merge: map[string]any{}}
	err := seen.state.PurgeAll(p.handling.Progress, patch.Merge, p.object.storageBody)
	if err := p.object.ignoreIfDeleting(ctx, err); err != nil {
		return err
	}
	p.memory.openRecords = openRecords{}
	p.handling.InterimStorage.PurgeEssence(&patch, p.object.storageBody)
	// With a last-handled configuration, the binding stays: the memory on the object is still valid.
	if seen.lastHandled == nil {
		p.object.unbindMemory(&patch)
	}
	if patching.HasFinalizer(p.object.body, p.handling.Finalizer) && !busy {
		if err := p.releaseDependents(ctx); err != nil {
			return err
		}
		patch.Transforms = append(patch.Transforms, patching.AllowDeletion(p.handling.Finalizer))
	}
	return p.object.sendPatch(ctx, patch)
}

// restoreLost restores memory or the finalizer that another client has removed, or replaced by a copy of another
// object's: see [pass.restoreWithBackoff].
func (p *pass) restoreLost(ctx context.Context, seen *observation, wanted interest) (verdict, error) {
	memory := p.memory
	held := patching.HasFinalizer(p.object.body, p.handling.Finalizer)
	finalizerLost := wanted.needsFinalizer && memory.HandledState.HadFinalizer && !held
	memory.HandledState.HadFinalizer = memory.HandledState.HadFinalizer || held // as this process has seen it
	switch {
	case seen.cause.Deleting:
		return continuePass, nil // the memory is not needed any more
	case wanted.hasChangeHandler && (seen.memoryLost || p.object.recordsLost), finalizerLost:
		return p.restoreWithBackoff(ctx, seen, finalizerLost)
	// The memory has lasted: forget the losses.
	case memory.losses != nil && memory.losses.areOver(p.handling.Now()):
		memory.losses = nil
	}
	return continuePass, nil
}

// syncStorages copies memory that only some of several storages have to the others. It also does so for idle objects:
// otherwise, a storage could never be given up. Records that Kopf left in the status go to annotations in one write:
// with the first annotation, the status is not read any more.
func (p *pass) syncStorages(ctx context.Context, seen *observation, wanted interest) (verdict, error) {
	// The memory of a copied object belongs to another object.
	if !wanted.hasChangeHandler || seen.cause.Deleting || p.object.foreign != nil {
		return continuePass, nil
	}
	patch, err := p.missingCopies(seen, seen.state.FetchRecord)
	if err != nil || len(patch.Merge) == 0 {
		return continuePass, err
	}
	if err := p.object.bindMemory(&patch); err != nil {
		return finishPass, err
	}
	// One write has all copies, so that no storage is ahead of another one.
	if err := p.object.sendPatch(ctx, patch); err != nil || p.object.gone {
		return finishPass, err
	}
	// Without the copies on the object, the next pass would write them again, in an endless loop.
	left, err := p.missingCopies(seen, func(id string) (*progress.Record, error) {
		return p.handling.Progress.Fetch(p.object.storageBody, id)
	})
	if err != nil || len(left.Merge) > 0 {
		return finishPass, fmt.Errorf("what one storage has, for the others: %w", errNotKept)
	}
	return restartPass, nil
}

// missingCopies returns the patch that copies memory to the storages that do not have it. It also removes memory that
// is stored twice: with the kind in its keys and without.
func (p *pass) missingCopies(
	seen *observation, read func(id string) (*progress.Record, error),
) (patching.Patch, error) {
	patch, body, reason := patching.Patch{Merge: map[string]any{}}, p.object.storageBody, seen.cause.Reason
	// Memory that was kept separate from a copy is joined first.
	if err := p.object.removeSeparateMemory(&patch, p.handling.bindingKey(body)); err != nil {
		return patch, err
	}
	multi, several := p.handling.Lens.Diffbase.(diffbase.Multi)
	// While a change is handled, its end stores the configuration in all storages.
	if several && (reason == cause.Noop || reason == cause.Resume) {
		if stored, err := multi.Fetch(body); err == nil && stored != nil { // as it is stored, not as it is compared
			if err := copyEssence(patch.Merge, body, multi, stored); err != nil {
				return patch, err
			}
		}
	}
	// Lost records are restored elsewhere.
	if p.object.recordsLost || !canMissCopies(p.handling.Progress) {
		return patch, nil
	}
	met := recordNames{}
	for _, h := range seen.state.AllStates() {
		// Sub-handlers can have records without a state.
		for _, id := range append([]string{h.ID}, h.Subrefs...) {
			if !met.addIfNew(id) {
				continue
			}
			record, err := read(id)
			if err != nil || record == nil {
				continue
			}
			if err := copyRecord(patch.Merge, body, p.handling.Progress, id, *record); err != nil {
				return patch, err
			}
		}
	}
	return patch, nil
}

// copyEssence stores the essence in each storage that does not have one, in its stored form.
func copyEssence(patch, body map[string]any, to diffbase.Multi, stored diffbase.Essence) error {
	for _, one := range to {
		if several, ok := one.(diffbase.Multi); ok {
			if err := copyEssence(patch, body, several, stored); err != nil {
				return err
			}
			continue
		}
		held, err := one.Fetch(body)
		if err != nil || held != nil {
			continue // a later storage can be malformed: the next write repairs it
		}
		if err := one.Store(patch, body, stored); err != nil {
			return fmt.Errorf("storing the last-handled configuration in all places: %w", err)
		}
	}
	return nil
}

// canMissCopies reports whether one part of the storage can have a record that another one does not have.
func canMissCopies(kept progress.Storage) bool {
	switch storages.WithoutFormerIDs(kept).(type) {
	case progress.Multi, progress.Smart:
		return true
	}
	return false
}

// copyRecord stores the record in each storage that does not have it.
func copyRecord(patch, body map[string]any, to progress.Storage, id string, record progress.Record) error {
	to = storages.WithoutFormerIDs(to)
	switch kept := to.(type) {
	case progress.Multi:
		for _, one := range kept {
			if err := copyRecord(patch, body, one, id, record); err != nil {
				return err
			}
		}
		return nil
	case progress.Smart: // the part that new records are written to
		to = kept.WrittenStorage()
	}
	held, err := to.Fetch(body, id)
	if err != nil || held != nil {
		return nil
	}
	if err := to.Store(patch, body, id, record); err != nil {
		return fmt.Errorf("storing the progress of handler %q in all places: %w", id, err)
	}
	return nil
}

// ensureFinalizer adds the finalizer before any handler is called, or removes it if no handler needs it.
func (p *pass) ensureFinalizer(ctx context.Context, seen *observation, wanted interest) (verdict, error) {
	name, deleting := p.handling.Finalizer, seen.cause.Deleting
	held := patching.HasFinalizer(p.object.body, name)
	switch {
	case wanted.needsFinalizer && !held && !deleting && p.rewriteDelay > 0:
		return continuePass, nil // it was lost, and is restored later
	case wanted.needsFinalizer && !held && !deleting:
		return restartPass, p.object.sendTransform(ctx, blockDeletion(name))
	case !wanted.needsFinalizer && held && deleting:
		return finishPass, p.releaseObject(ctx, seen, wanted.hasRunningBackground)
	case !wanted.needsFinalizer && held:
		p.memory.HandledState.HadFinalizer = false // it is removed on purpose, so it is not lost
		return restartPass, p.object.sendTransform(ctx, patching.AllowDeletion(name))
	default:
		return continuePass, nil
	}
}

// blockDeletion adds the finalizer, unless the object is being deleted: the server would refuse the write.
func blockDeletion(finalizer string) patching.Transform {
	return func(body map[string]any) error {
		if patching.IsBeingDeleted(body) {
			return nil
		}
		return patching.BlockDeletion(finalizer)(body)
	}
}

// dropStaleProgress ends causes that do not exist any more: the change was reverted, or the object left the filters.
// Their records are removed. If a handler had already succeeded, the state that it saw becomes the last-handled
// configuration, so that the revert follows as an update. A request for another run of the handlers comes first.
func (p *pass) dropStaleProgress(ctx context.Context, seen *observation, wanted interest) (verdict, error) {
	if next, err := p.beginRequest(ctx, seen, wanted); next != continuePass || err != nil {
		return next, err
	}
	reason := seen.cause.Reason
	switch {
	case reason == cause.Gone:
		return finishPass, nil
	case reason == cause.Free, seen.cause.Deleting && !wanted.hasChangeHandler:
		p.noteReleased(seen, wanted)
		return finishPass, p.releaseObject(ctx, seen, wanted.hasRunningBackground)
	}
	// A handler saw a state that the object does not have any more.
	handled := seen.interimEssence != nil && !cause.EqualEssences(seen.interimEssence, seen.cause.New)
	// No handler matches: drop the progress, if there is any.
	switch {
	case !wanted.hasChangeHandler && len(seen.state.AllStates()) == 0:
		return finishPass, nil
	case !wanted.hasChangeHandler:
		return finishPass, p.dropProgress(ctx, seen, handled)
	// The change was reverted: the handlers that saw it must see the revert.
	case (reason == cause.Noop || reason == cause.Resume) && handled:
		return restartPass, p.dropProgress(ctx, seen, true)
	case reason == cause.Noop:
		return finishPass, p.dropProgress(ctx, seen, false)
	default:
		return continuePass, nil
	}
}

// dropProgress removes the records. If a handler has seen another configuration than the present one, the two
// configurations are swapped: some handlers have seen the one, some the other. Whichever the object has later, the
// handlers that saw the other one must be called.
func (p *pass) dropProgress(ctx context.Context, seen *observation, handled bool) error {
	if len(seen.state.AllStates()) == 0 && seen.interimEssence == nil {
		return nil
	}
	logf.FromContext(ctx).Info("Dropping the progress of a change that does not exist any more", "seen", handled)
	p.draft.NoteDropped("the change was reverted, or is filtered out now")
	p.draft.AddToJournal() // more can be recorded for the same object in this pass
	patch := patching.Patch{Merge: map[string]any{}}
	err := seen.state.PurgeAll(p.handling.Progress, patch.Merge, p.object.storageBody)
	if err := p.object.ignoreIfDeleting(ctx, err); err != nil {
		return err
	}
	p.memory.openRecords = openRecords{}
	p.object.answerRequest(&patch, seen, false)
	// There are no two configurations to swap.
	if !handled || seen.cause.Old == nil {
		p.handling.InterimStorage.PurgeEssence(&patch, p.object.storageBody)
		return p.object.sendPatch(ctx, patch)
	}
	// Swap the configurations: the one that was seen becomes the last-handled one.
	if err := p.object.storeHandled(ctx, &patch, seen.interimEssence); err != nil {
		return err
	}
	if err := p.object.storeInterimBeside(&patch, seen.cause.Old); err != nil {
		return err
	}
	p.memory.HandledState.Hash = cause.HashEssence(seen.interimEssence)
	return p.object.sendPatch(ctx, patch)
}
