package changes

import (
	"context"

	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/cause"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/patching"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

// settle ends the causes that are no more: a change was reverted, or the object left the filters. Their records go.
// But where a handler had already succeeded, what it saw becomes the last-handled configuration, so that the revert
// follows as an update.
func (p *pass) settle(ctx context.Context) (verdict, error) {
	reason := p.cause.Reason
	switch {
	case reason == cause.Gone:
		return stop, nil
	case reason == cause.Free, p.cause.Deleting && !p.interest.Changing:
		return stop, p.leave(ctx)
	}
	seen := p.interim != nil && !diff.Equal(asValue(p.interim), asValue(p.cause.New))
	switch {
	case !p.interest.Changing && len(p.former.Handlers()) == 0:
		return stop, nil
	case !p.interest.Changing:
		return stop, p.forget(ctx, seen)
	case (reason == cause.Noop || reason == cause.Resume) && seen:
		return startOver, p.forget(ctx, true)
	case reason == cause.Noop:
		return stop, p.forget(ctx, false)
	default:
		return goOn, nil
	}
}

// leave ends the matter with an object that is being deleted, and of which no handler of changes wants anything:
// nothing is remembered of a cause that was not finished, as others may hold the object for long. Unless something
// still runs for it, we hold it no more.
func (p *pass) leave(ctx context.Context) error {
	patch := patching.Patch{Merge: map[string]any{}}
	if err := p.bearable(p.former.Purge(p.Progress, patch.Merge, p.body)); err != nil {
		return err
	}
	p.Interim.Purge(&patch, p.body)
	p.unbind(&patch)
	if patching.HasFinalizer(p.body, p.Finalizer) && !p.busy {
		patch.Transforms = append(patch.Transforms, patching.AllowDeletion(p.Finalizer))
	}
	return p.send(ctx, patch)
}

// forget drops the records. With something seen, the two configurations change places: some handlers have seen the one,
// some the other, and whichever of them the object has at last, the others must be told.
func (p *pass) forget(ctx context.Context, seen bool) error {
	if len(p.former.Handlers()) == 0 && p.interim == nil {
		return nil
	}
	logf.FromContext(ctx).Info("The change is no more; its progress is forgotten", "seen", seen)
	patch := patching.Patch{Merge: map[string]any{}}
	if err := p.bearable(p.former.Purge(p.Progress, patch.Merge, p.body)); err != nil {
		return err
	}
	if !seen || p.cause.Old == nil {
		p.Interim.Purge(&patch, p.body)
		return p.send(ctx, patch)
	}
	if err := p.storeHandled(ctx, &patch, p.interim); err != nil {
		return err
	}
	if err := p.storeBeside(&patch, p.cause.Old); err != nil {
		return err
	}
	return p.send(ctx, patch)
}
