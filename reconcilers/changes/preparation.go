package changes

import (
	"context"
	"fmt"

	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/cause"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/patching"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/storages"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
	"github.com/kopf-runtime/kopf-runtime/storage/diffbase"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

// interest is what is wanted of the object.
type interest struct {
	changing  bool // a handler of changes matches, whatever the reason; otherwise the object is left alone
	finalizer bool // the object must be held on its deletion
	busy      bool // the object is being deleted, and something in the background still runs for it
}

// attendBackground starts and stops what runs in the background, which may hold the object, too.
func (p *pass) attendBackground(ctx context.Context, c *cause.Cause) (wanted interest, err error) {
	if p.handling.Background == nil {
		return interest{}, nil
	}
	wanted.finalizer, wanted.busy, err = p.handling.Background.Supervise(ctx, c)
	return wanted, filterError(err)
}

// awaitsBackground reports whether deletion handlers are to wait for what still runs for the object: they would clean
// up beside it.
func (p *pass) awaitsBackground(c *cause.Cause) bool {
	h := p.handling
	return h.Background != nil && !h.KopfDeletions && h.Background.DelaysDeletion(c)
}

// checkInterest asks whether any handler wants the object. While the operator exits or pauses, nothing is begun any
// more.
func (p *pass) checkInterest(ctx context.Context, c *cause.Cause, wanted *interest) (verdict, error) {
	if !p.handling.MayBegin(ctx) {
		p.exiting = true
		return stop, nil
	}
	found, err := p.handling.interestIn(ctx, c, p.look.Teller())
	if found.Changing {
		p.look.Forget() // they are selected yet
	}
	wanted.changing, wanted.finalizer = found.Changing, found.Finalizer || wanted.finalizer || p.hasDependents()
	return goOn, filterError(err)
}

// interestIn asks the handlers whether they want the object. An object without the field of an update handler is
// wanted, too: it must be remembered, so that the field is a change when it comes. Kopf takes that change for the
// creation.
func (h *Handling) interestIn(ctx context.Context, c *cause.Cause, tell adapters.Teller) (adapters.Interest, error) {
	found, err := adapters.InterestIn(ctx, h.Handlers, c, tell)
	if err == nil && !found.Changing && !h.KopfTexts {
		found.Changing, err = adapters.AwaitsField(ctx, h.Handlers, c)
	}
	return found, err
}

func (p *pass) hasDependents() bool {
	return p.handling.Dependents != nil && p.handling.Dependents.Held(p.object.body)
}

// releaseDependents is the last thing before the finalizer goes. An error is never one of the object's own content.
func (p *pass) releaseDependents(ctx context.Context) error {
	if !p.hasDependents() {
		return nil
	}
	if err := p.handling.Dependents.Release(ctx, p.object.body); err != nil {
		return fmt.Errorf("releasing what depends on the object: %s", err.Error())
	}
	return nil
}

// release ends the matter with an object that is being deleted, and of which no handler of changes wants anything:
// nothing is remembered of a cause that was not finished, as others may hold the object for long. The finalizer goes,
// too, unless something in the background still runs for the object.
func (p *pass) release(ctx context.Context, seen *observation, busy bool) error {
	patch := patching.Patch{Merge: map[string]any{}}
	err := seen.state.Purge(p.handling.Progress, patch.Merge, p.object.kept)
	if err := p.object.tolerate(ctx, err); err != nil {
		return err
	}
	p.memory.open = openRecords{}
	p.handling.Interim.Purge(&patch, p.object.kept)
	if seen.stored == nil {
		p.object.unbind(&patch)
	}
	if patching.HasFinalizer(p.object.body, p.handling.Finalizer) && !busy {
		if err := p.releaseDependents(ctx); err != nil {
			return err
		}
		patch.Transforms = append(patch.Transforms, patching.AllowDeletion(p.handling.Finalizer))
	}
	return p.object.send(ctx, patch)
}

// restoreLost sees to what another client has removed of our memory on the object, or replaced by a copy of another
// object's: see [pass.writeAgainLater].
func (p *pass) restoreLost(ctx context.Context, seen *observation, wanted interest) (verdict, error) {
	memory := p.memory
	held := patching.HasFinalizer(p.object.body, p.handling.Finalizer)
	finalizerLost := wanted.finalizer && memory.Handled.Held && !held
	memory.Handled.Held = memory.Handled.Held || held
	switch {
	case seen.cause.Deleting:
		return goOn, nil
	case wanted.changing && (seen.lost || p.object.recordsLost), finalizerLost:
		return p.writeAgainLater(ctx, seen, finalizerLost)
	case memory.losses != nil && memory.losses.areOver(p.handling.Now()):
		memory.losses = nil
	}
	return goOn, nil
}

// syncStorages brings what only some of several storages have to all of them, also on objects where nothing happens:
// or else nobody could ever do without the storages that are to be given up. What Kopf once left in the status goes to
// annotations in one write: with the first of them, the status does not count any more.
func (p *pass) syncStorages(ctx context.Context, seen *observation, wanted interest) (verdict, error) {
	if !wanted.changing || seen.cause.Deleting || p.object.foreign != nil {
		return goOn, nil
	}
	patch, err := p.missingCopies(seen, seen.state.Fetch)
	if err != nil || len(patch.Merge) == 0 {
		return goOn, err
	}
	if err := p.object.bind(&patch); err != nil {
		return stop, err
	}
	if err := p.object.send(ctx, patch); err != nil || p.object.gone {
		return stop, err
	}
	left, err := p.missingCopies(seen, func(id string) (*progress.Record, error) {
		return p.handling.Progress.Fetch(p.object.kept, id)
	})
	if err != nil || len(left.Merge) > 0 {
		return stop, fmt.Errorf("what one storage has, for the others: %w", errNotKept)
	}
	return startOver, nil
}

// missingCopies is the patch that stores what some of several storages have in the others, and removes what is stored
// twice: with the kind in its keys and without.
func (p *pass) missingCopies(
	seen *observation, read func(id string) (*progress.Record, error),
) (patching.Patch, error) {
	patch, body, reason := patching.Patch{Merge: map[string]any{}}, p.object.kept, seen.cause.Reason
	if err := p.object.joinAgain(&patch, p.handling.boundTo(body)); err != nil {
		return patch, err
	}
	multi, several := p.handling.Lens.Diffbase.(diffbase.Multi)
	if several && (reason == cause.Noop || reason == cause.Resume) {
		if stored, err := multi.Fetch(body); err == nil && stored != nil { // as it is stored, not as it is compared
			if err := copyEssence(patch.Merge, body, multi, stored); err != nil {
				return patch, err
			}
		}
	}
	if p.object.recordsLost || !keepsCopies(p.handling.Progress) {
		return patch, nil
	}
	met := recordNames{}
	for _, h := range seen.state.Handlers() {
		for _, id := range append([]string{h.ID}, h.Subrefs...) {
			if !met.first(id) {
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

// copyEssence stores it, as it is stored elsewhere, where there is none.
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
			continue // a storage behind the first one may be malformed: the next write repairs it
		}
		if err := one.Store(patch, body, stored); err != nil {
			return fmt.Errorf("storing the last-handled configuration in all places: %w", err)
		}
	}
	return nil
}

// keepsCopies tells whether a record may be in one place of the storage and not in another.
func keepsCopies(kept progress.Storage) bool {
	switch storages.WithoutFormerIDs(kept).(type) {
	case progress.Multi, progress.Smart:
		return true
	}
	return false
}

// copyRecord stores the record where there is none.
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
	case progress.Smart:
		to = kept.Written()
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
	case wanted.finalizer && !held && !deleting && p.rewrite > 0:
		return goOn, nil
	case wanted.finalizer && !held && !deleting:
		return startOver, p.object.transform(ctx, blockDeletion(name))
	case !wanted.finalizer && held && deleting:
		return stop, p.release(ctx, seen, wanted.busy)
	case !wanted.finalizer && held:
		p.memory.Handled.Held = false
		return startOver, p.object.transform(ctx, patching.AllowDeletion(name))
	default:
		return goOn, nil
	}
}

// blockDeletion adds the finalizer, but not to an object whose deletion was quicker: the server would refuse that.
func blockDeletion(finalizer string) patching.Transform {
	return func(body map[string]any) error {
		if patching.BeingDeleted(body) {
			return nil
		}
		return patching.BlockDeletion(finalizer)(body)
	}
}

// dropStaleProgress ends the causes that do not exist any more: a change was reverted, or the object left the filters.
// Their records go. But where a handler had already succeeded, what it saw becomes the last-handled configuration, so
// that the revert follows as an update.
func (p *pass) dropStaleProgress(ctx context.Context, seen *observation, wanted interest) (verdict, error) {
	reason := seen.cause.Reason
	switch {
	case reason == cause.Gone:
		return stop, nil
	case reason == cause.Free, seen.cause.Deleting && !wanted.changing:
		p.noteReleased(seen, wanted)
		return stop, p.release(ctx, seen, wanted.busy)
	}
	handled := seen.interim != nil && !diff.Equal(asValue(seen.interim), asValue(seen.cause.New))
	switch {
	case !wanted.changing && len(seen.state.Handlers()) == 0:
		return stop, nil
	case !wanted.changing:
		return stop, p.dropProgress(ctx, seen, handled)
	case (reason == cause.Noop || reason == cause.Resume) && handled:
		return startOver, p.dropProgress(ctx, seen, true)
	case reason == cause.Noop:
		return stop, p.dropProgress(ctx, seen, false)
	default:
		return goOn, nil
	}
}

// dropProgress removes the records. If a handler has handled a configuration which is not that of the object, the two
// configurations change places: some handlers have seen the one, some the other, and whichever of them the object has
// at last, the others must be told.
func (p *pass) dropProgress(ctx context.Context, seen *observation, handled bool) error {
	if len(seen.state.Handlers()) == 0 && seen.interim == nil {
		return nil
	}
	logf.FromContext(ctx).Info("Dropping the progress of a change that does not exist any more", "seen", handled)
	p.look.Dropped("the change was reverted, or is filtered out now")
	p.look.Note() // there may be another one at what is left of it
	patch := patching.Patch{Merge: map[string]any{}}
	err := seen.state.Purge(p.handling.Progress, patch.Merge, p.object.kept)
	if err := p.object.tolerate(ctx, err); err != nil {
		return err
	}
	p.memory.open = openRecords{}
	if !handled || seen.cause.Old == nil {
		p.handling.Interim.Purge(&patch, p.object.kept)
		return p.object.send(ctx, patch)
	}
	if err := p.object.storeHandled(ctx, &patch, seen.interim); err != nil {
		return err
	}
	if err := p.object.storeInterimBeside(&patch, seen.cause.Old); err != nil {
		return err
	}
	p.memory.Handled.Hash = cause.Hash(seen.interim)
	return p.object.send(ctx, patch)
}
