package changes

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/execution"
	"github.com/kopf-runtime/kopf-runtime/internal/patching"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/journal"
)

// addFailedConfiguration stores the state that the failed handlers saw, with the handlers' own patches, as the
// last-handled configuration: so an edit is noticed, also while other handlers are retried. Later states that other
// handlers saw are not stored, except for their own patches if there was no edit. If the annotations do not have room,
// only this process notices edits.
func (p *pass) addFailedConfiguration(ctx context.Context, handled *outcomes, patch *patching.Patch) error {
	c, stored := handled.cause, handled.hasHoldingFailure
	holds := func(h *adapters.HandlerChain) bool { return h.Description.HoldOnFailure }
	// Only deletions with such handlers are concerned.
	if !c.Deleting || !slices.ContainsFunc(p.handling.Handlers, holds) {
		return nil
	}
	// The flag stays set: later writes store the configuration again.
	handled.hasHoldingFailure = stored || handled.hasNewHoldingFailure()
	if !handled.hasHoldingFailure && (c.Changed || handled.workingCopy == nil) {
		return nil
	}
	// The handlers' own patches must not count as an edit.
	last := c.New
	if handled.workingCopy != nil {
		if left, err := p.handling.Lens.New(handled.workingCopy); err == nil {
			last = left
		}
	}
	// Once this cause has stored a configuration, the one in c.Old is outdated.
	isKnown := !stored && cause.EqualEssences(c.Old, last)
	if last == nil || isKnown || !p.object.memoryFits(patch, last) {
		return nil
	}
	handled.essenceToStore = last
	return p.object.storeHandled(ctx, patch, last)
}

// noteFailedConfiguration updates the stored last-handled configuration in memory, although the deletion is not
// finished.
func (p *pass) noteFailedConfiguration(handled *outcomes) {
	p.memory.HandledState.Hash = cause.HashEssence(handled.essenceToStore)
	// The precondition of an interim essence refers to the stored configuration.
	if stored, err := p.handling.Lens.Last(p.object.ownBody, handled.cause.New); err == nil {
		handled.observation.lastHandled = stored
	}
}

// reportKept logs once per process why the object is kept.
func (p *pass) reportKept(ctx context.Context, handled *outcomes) {
	var ids, texts []string
	for _, h := range handled.failedHolders() {
		ids = append(ids, h.ID)
		if h.Message != nil {
			texts = append(texts, h.ID+": "+*h.Message)
		}
	}
	why := errors.New(strings.Join(texts, "; "))
	// The journal has the reason after each pass, the log once.
	p.journalEntry().RecordHold(journal.HeldFailure, why, time.Time{})
	if p.memory.isNew(why) {
		logf.FromContext(ctx).Error(why, "Deletion failed permanently; keeping the object until it is edited or its "+
			"finalizer is removed", "handlers", ids, "finalizer", p.handling.Finalizer)
	}
}

// retryHolders removes the progress of the handlers that keep the object if the object was edited after their failure:
// they are called as if for the first time. If another client reverts the handlers' own patches, the object differs
// permanently; such an edit counts once per process.
func (p *pass) retryHolders(ctx context.Context) (verdict, error) {
	c := p.outcomes.cause
	// There was no edit since the failure, or this edit was counted already.
	if !c.IsDeleted() || !c.Changed || p.memory.retriedEditHash == cause.HashEssence(c.New) {
		return continuePass, nil
	}
	if err := p.removeFailedRecords(ctx, p.outcomes.failedHolders()); err != nil || p.object.gone {
		return finishPass, err
	}
	// Note the edit after the write: if the write fails, the next pass repeats it.
	p.memory.retriedEditHash = cause.HashEssence(c.New)
	return restartPass, nil
}

// removeFailedRecords removes the records of the handlers and of their sub-handlers.
func (p *pass) removeFailedRecords(ctx context.Context, failed []*execution.HandlerState) error {
	patch, ids, purged := patching.Patch{Merge: map[string]any{}}, []string{}, []string{}
	for _, h := range failed {
		ids = append(ids, h.ID)
		purged = append(append(purged, h.ID), h.Subrefs...)
	}
	if err := execution.PurgeRecords(p.handling.Progress, patch.Merge, p.object.storageBody, purged); err != nil {
		return err
	}
	if err := p.object.sendPatch(ctx, patch); err != nil || p.object.gone {
		return err
	}
	// The removed records must not be restored as lost ones.
	p.memory.openRecords = openRecords{}
	for _, id := range purged {
		delete(p.memory.unstoredRecords, id)
	}
	logf.FromContext(ctx).Info("Object was edited after its deletion failed; calling the failed handlers again",
		"handlers", ids)
	return nil
}
