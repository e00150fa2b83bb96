package controller

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/indexes"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/source"
)

var _ source.Watcher = (*Controller)(nil)

// Listed marks an object of the first listing: it was there before the operator.
func (c *Controller) Listed(obj source.Object) { c.objects.MarkInitial(obj.GetUID()) }

// Seen updates the indices, then queues the event for the handlers of events, if there are any, and tells of it where
// children are looked after. Without either of these two, our own write for which nothing is to be done needs no pass,
// and what comes during a pass is for its end to tell: see put.
func (c *Controller) Seen(eventType string, obj source.Object) (pass bool) {
	shown := eventType
	if eventType == source.Vanished {
		eventType = "DELETED" // only owners distinguish the two
	}
	switch {
	case eventType == "DELETED":
		if pass = true; c.selector != nil && c.events == nil {
			eventType = indexes.Left // which may be all that has happened
		}
	case c.events == nil && c.owned == nil && c.objects.TakeEcho(obj):
	default:
		pass = true
		c.objects.Seen(obj)
		c.unhandled.Seen(obj.GetUID(), time.Now())
	}
	if c.journal != nil {
		c.journal.Object(obj.Key(), obj.GetUID()).Event(eventType, obj.GetResourceVersion())
	}
	if c.feed != nil {
		c.feed.Seen(eventType, obj)
	}
	if c.events != nil {
		c.events.add(eventType, obj)
	}
	if c.owned != nil {
		c.seenByOwners(shown, obj) // to owners, a child without the labels of a selector is gone
	}
	return pass
}

// Deleted forgets what is kept for passes over the object, and stops its background handlers. The next pass delivers
// the event to handlers; notifyDeleted follows it.
func (c *Controller) Deleted(obj source.Object) {
	c.objects.Delete(obj)
	c.disappeared.add(obj)
	c.background.Forget(obj.GetUID())
	c.unhandled.Forget(obj.GetUID())
}

// notifyDeleted calls forget for the deleted objects of a name, after their event handlers were called.
func (c *Controller) notifyDeleted(key types.NamespacedName) {
	c.forget(c.objects.TakeDeletions(key))
}

// synced runs after the first listing of a run, before any pass: objects that are not in it were deleted while no
// controller was running.
func (c *Controller) synced() {
	if !c.hasSynced() {
		return
	}
	c.health.Synced()
	c.forgetMissing(c.store.List())
	c.listedForIndices()
}

// listedForIndices ends the first listing for the indices. The memory of a run does not know of objects that were seen
// for the indices alone, while no controller was running.
func (c *Controller) listedForIndices() {
	if c.feed != nil {
		c.forget(c.feed.Listed(c.version()))
	}
	c.indicesFilled()
}

// forget calls Dependencies.Forget and that of the dependents for objects that are gone.
func (c *Controller) forget(gone []types.UID) {
	for _, uid := range gone {
		if c.deps.Forget != nil {
			c.deps.Forget(uid)
		}
		if c.deps.Dependents != nil {
			c.deps.Dependents.Forget(uid)
		}
	}
}

// forgetMissing forgets the objects that existed when the previous run ended, and are not in the cache now.
func (c *Controller) forgetMissing(cached []any) {
	gone := c.objects.Missed(cached)
	for _, uid := range gone {
		c.background.Forget(uid)
	}
	c.forget(gone)
}

// endRun remembers which objects exist, as the next run compares its listing with them. If the kind is removed, there
// may be no next run: the controller forgets all of its objects.
func (c *Controller) endRun(ctx context.Context) {
	if c.hasSynced() {
		c.objects.Leave(c.store.List())
	}
	c.unhandled.Clear()
	if !errors.Is(context.Cause(ctx), ErrRemoved) {
		return
	}
	c.forgetAll()
}

// forgetAll forgets all objects that existed when the previous run ended.
func (c *Controller) forgetAll() {
	c.forgetMissing(nil)
	if c.indexer != nil {
		c.indexer.Clear()
	}
}

// indicesFilled removes the scope from those that handlers wait for.
func (c *Controller) indicesFilled() { c.turn.Readiness.Done(c.scope.String()) }

// giveUpIndices lets handlers run without the indices of a kind that only a change on the cluster can make listable.
func (c *Controller) giveUpIndices(err error) {
	if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err) {
		if c.feed != nil {
			c.feed.GiveUp()
		}
		c.indicesFilled()
	}
}
