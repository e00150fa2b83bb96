package changes

import (
	"context"
	"fmt"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/cause"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/patching"
	"github.com/kopf-runtime/kopf-runtime/storage/diffbase"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

// syncStorages brings what only some of several storages have to all of them, also on objects where nothing happens: or
// else nobody could ever do without the storages that are to be given up. What Kopf once left in the status goes to
// annotations in one write: with the first of them, the status does not count any more.
func (p *pass) syncStorages(ctx context.Context, seen *observation, wanted interest) (verdict, error) {
	if !wanted.changing || seen.cause.Deleting || p.object.foreign != nil {
		return goOn, nil
	}
	patch, err := p.missingCopies(seen)
	if err != nil || len(patch.Merge) == 0 {
		return goOn, err
	}
	if err := p.object.bind(&patch); err != nil {
		return stop, err
	}
	if err := p.object.send(ctx, patch); err != nil || p.object.gone {
		return stop, err
	}
	if left, err := p.missingCopies(seen); err != nil || len(left.Merge) > 0 {
		return stop, fmt.Errorf("what one storage has, for the others: %w", errNotKept)
	}
	return startOver, nil
}

// missingCopies is the patch that stores what some of several storages have in the others.
func (p *pass) missingCopies(seen *observation) (patching.Patch, error) {
	patch, body, reason := patching.Patch{Merge: map[string]any{}}, p.object.body, seen.cause.Reason
	multi, several := p.handling.Lens.Diffbase.(diffbase.Multi)
	if several && (reason == cause.Noop || reason == cause.Resume) {
		if stored, err := multi.Fetch(body); err == nil && stored != nil {
			if err := copyEssence(patch.Merge, body, multi, stored); err != nil {
				return patch, err
			}
		}
	}
	if !keepsCopies(p.handling.Progress) {
		return patch, nil
	}
	met := recordNames{}
	for _, h := range seen.former.Handlers() {
		for _, id := range append([]string{h.ID}, h.Subrefs...) {
			if !met.first(id) {
				continue
			}
			record, err := p.handling.Progress.Fetch(body, id)
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
			return fmt.Errorf("storing in all places what was handled last: %w", err)
		}
	}
	return nil
}

// keepsCopies tells whether a record may be in one place of the storage and not in another.
func keepsCopies(kept progress.Storage) bool {
	switch kept.(type) {
	case progress.Multi, progress.Smart:
		return true
	}
	return false
}

// copyRecord stores the record where there is none.
func copyRecord(patch, body map[string]any, to progress.Storage, id string, record progress.Record) error {
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
