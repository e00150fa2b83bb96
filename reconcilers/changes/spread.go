package changes

import (
	"context"
	"fmt"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/cause"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/patching"
	"github.com/kopf-runtime/kopf-runtime/storage/diffbase"
	"github.com/kopf-runtime/kopf-runtime/storage/keys"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

// spread brings what only some of several storages have to all of them, also on objects where nothing happens: or else
// nobody could ever do without the storages that are to be given up. What Kopf once left in the status goes to
// annotations in one write: with the first of them, the status does not count any more.
func (p *pass) spread(ctx context.Context) (verdict, error) {
	if !p.interest.Changing || p.cause.Deleting || p.foreign != nil {
		return goOn, nil
	}
	patch, err := p.spreading()
	if err != nil || len(patch.Merge) == 0 {
		return goOn, err
	}
	if err := p.bind(&patch); err != nil {
		return stop, err
	}
	if err := p.send(ctx, patch); err != nil || p.gone {
		return stop, err
	}
	if left, err := p.spreading(); err != nil || len(left.Merge) > 0 {
		return stop, fmt.Errorf("what one storage has, for the others: %w", errNotKept)
	}
	return startOver, nil
}

func (p *pass) spreading() (patching.Patch, error) {
	patch := patching.Patch{Merge: map[string]any{}}
	if multi,
		ok := p.Lens.Diffbase.(diffbase.Multi); ok && (p.cause.Reason == cause.Noop || p.cause.Reason == cause.Resume) {
		if stored, err := multi.Fetch(p.body); err == nil && stored != nil {
			if err := spreadEssence(patch.Merge, p.body, multi, stored); err != nil {
				return patch, err
			}
		}
	}
	if !several(p.Progress) {
		return patch, nil
	}
	met := records{}
	for _, entry := range p.former.Handlers() {
		for _, id := range append([]string{entry.ID}, entry.Subrefs...) {
			if !met.first(id) {
				continue
			}
			record, err := p.Progress.Fetch(p.body, id)
			if err != nil || record == nil {
				continue
			}
			if err := spreadRecord(patch.Merge, p.body, p.Progress, id, *record); err != nil {
				return patch, err
			}
		}
	}
	return patch, nil
}

// spreadEssence stores it, as it is stored elsewhere, where there is none.
func spreadEssence(patch, body map[string]any, to diffbase.Multi, stored diffbase.Essence) error {
	for _, one := range to {
		if several, ok := one.(diffbase.Multi); ok {
			if err := spreadEssence(patch, body, several, stored); err != nil {
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

// records are those that were read, by their names. Of one that is listed in a thousand spellings, nobody is to read it
// a thousand times.
type records map[string]bool

func (r records) first(id string) bool {
	name := keys.V2("", id)
	met := r[name]
	r[name] = true
	return !met
}

// several tells whether a record may be in one place of the storage and not in another.
func several(kept progress.Storage) bool {
	switch kept.(type) {
	case progress.Multi, progress.Smart:
		return true
	}
	return false
}

func spreadRecord(patch, body map[string]any, to progress.Storage, id string, record progress.Record) error {
	switch kept := to.(type) {
	case progress.Multi:
		for _, one := range kept {
			if err := spreadRecord(patch, body, one, id, record); err != nil {
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
