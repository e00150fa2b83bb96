package changes

import (
	"context"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/patching"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
	"github.com/kopf-runtime/kopf-runtime/storage/diffbase"
)

// conclude writes what is left, and closes the cause if all handlers are finished.
func (p *pass) conclude(ctx context.Context) (verdict, error) {
	err := p.save(ctx, p.attempts)
	if p.state.Done() && !p.gone {
		p.memory.Initial = false
	}
	return stop, err
}

// close adds to the patch what ends a cause: no records, the new last-handled configuration, no finalizer of a
// deleted object.
func (p *pass) close(ctx context.Context, patch *patching.Patch) error {
	if err := p.bearable(p.state.Purge(p.Progress, patch.Merge, p.body)); err != nil {
		return err
	}
	if p.cause.Deleting {
		patch.Transforms = append(patch.Transforms, patching.AllowDeletion(p.Finalizer))
	}
	handled := p.interim
	if handled == nil {
		handled = p.cause.New
	}
	// There is no essence at all if the deleted object has one that cannot be read.
	if handled == nil || diff.Equal(
		asValue(p.cause.Old), asValue(handled),
	) || p.cause.Deleting && !p.fits(patch, handled) {
		if !patch.Empty() { // nothing is written for that alone
			p.Interim.Purge(patch, p.body)
		}
		return nil
	}
	if err := p.bind(patch); err != nil {
		return err
	}
	if err := p.storeHandled(ctx, patch, handled); err != nil {
		return err
	}
	if p.cause.Deleting || diff.Equal(asValue(handled), asValue(p.cause.New)) {
		p.Interim.Purge(patch, p.body)
		return nil
	}
	// Others have seen something else than the first. An update follows; and should the change be reverted before, it
	// has to follow all the same.
	return p.storeBeside(patch, p.cause.New)
}

// continued adds what an unfinished cause needs: the records, and what the first successful handler saw.
func (p *pass) continued(patch *patching.Patch) error {
	if p.purging {
		if err := p.bearable(p.state.PurgePassive(p.Progress, patch.Merge, p.body)); err != nil {
			return err
		}
	}
	err := p.state.Store(p.Progress, patch.Merge, p.body)
	p.remember(err)
	if err := p.bearable(err); err != nil {
		return err
	}
	tooMuch := annotationsSize(p.body, patch.Merge) > annotationsLimit
	if p.interim != nil && (tooMuch || !p.interimStored(patch)) {
		if err := p.storeOpen(patch); err != nil {
			return err
		}
	}
	if len(patch.Merge) == 0 {
		return nil
	}
	if p.interim == nil && p.stale {
		p.Interim.Purge(patch, p.body)
	}
	return p.bind(patch)
}

func asValue(e diffbase.Essence) any {
	if e == nil {
		return nil
	}
	return e
}
