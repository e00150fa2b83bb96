package controller

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrlsource "sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/source"
)

var _ source.Watcher = (*Controller)(nil)

// Listed marks the objects that were there at the start.
func (c *Controller) Listed(obj source.Object) { c.objects.MarkInitial(obj.GetUID()) }

// Seen brings the indices up to date, then keeps the event for the handlers of events, if there are any.
func (c *Controller) Seen(kind string, obj source.Object) {
	if c.indexer != nil {
		c.indexer.Seen(kind, obj)
	}
	c.events.add(kind, obj)
}

// Deleted forgets the object, and stops what runs for it. That it is gone is told when its handlers have been told.
func (c *Controller) Deleted(obj source.Object) {
	c.objects.Delete(obj)
	c.background.Forget(obj.GetUID())
}

// notifyDeleted tells of the objects of a name that are gone, after all handlers have been told.
func (c *Controller) notifyDeleted(key types.NamespacedName) {
	if gone := c.objects.TakeDeletions(key); c.deps.Settings.Forget != nil {
		for _, uid := range gone {
			c.deps.Settings.Forget(uid)
		}
	}
}

// listing is a source that tells when the first listing is through.
type listing struct {
	informed ctrlsource.TypedSyncingSource[source.Request]
	through  *Controller
}

var _ ctrlsource.TypedSyncingSource[source.Request] = listing{}

// Start is that of the source.
func (l listing) Start(ctx context.Context, q workqueue.TypedRateLimitingInterface[source.Request]) error {
	return l.informed.Start(ctx, q)
}

// WaitForSync is that of the source.
func (l listing) WaitForSync(ctx context.Context) error {
	err := l.informed.WaitForSync(ctx)
	if err == nil && ctx.Err() == nil { // the end of the context is no error to the source
		l.through.listed()
	}
	return err
}

// listed is after the first listing of this run: what is not in it has gone while no controller was there.
func (c *Controller) listed() {
	if !c.hasSynced() {
		return
	}
	c.forgetMissing(c.store.List())
	if c.indexer != nil {
		c.indexer.Listed()
	}
	c.indicesFilled()
}

// forgetMissing tells of the objects that were there when a controller ended, and are not now.
func (c *Controller) forgetMissing(cached []any) {
	for _, uid := range c.objects.Missed(cached) {
		c.background.Forget(uid)
		if c.deps.Settings.Forget != nil {
			c.deps.Settings.Forget(uid)
		}
	}
}

// leave is at the end of a run. If the kind is removed, nobody may tell of the end of its objects: all are forgotten.
func (c *Controller) leave(ctx context.Context) {
	if c.hasSynced() {
		c.objects.Leave(c.store.List())
	}
	if !errors.Is(context.Cause(ctx), ErrRemoved) {
		return
	}
	c.forgetMissing(nil)
	if c.indexer != nil {
		c.indexer.Begin(c.handlers.Indexing, c.deps.Settings.Backoff, c.log)
		c.indexer.Listed()
	}
}

// indicesFilled ticks the scope off those that handlers wait for.
func (c *Controller) indicesFilled() { c.deps.Readiness.Done(c.scope.String()) }

// giveUpIndices is for indices that could only be filled by somebody's doing: the others must not wait for that.
func (c *Controller) giveUpIndices(err error) {
	if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err) {
		c.indicesFilled()
	}
}
