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

var _ source.EventObserver = (*Controller)(nil)

// NoteListed marks an object of the first listing, which existed before the operator started: resume handlers run for
// it.
func (c *Controller) NoteListed(obj source.Object) { c.objects.MarkInitial(obj.GetUID()) }

// NoteEvent updates the indices, queues the event for event handlers, and notifies owners and children. It returns
// false for our own write if neither events nor children need it. During a pass it cannot decide whether an event is an
// own write; it defers the decision to the end of the pass, see [Controller.releaseMemory].
func (c *Controller) NoteEvent(eventType string, obj source.Object) (pass bool) {
	// shown keeps the original type for the owners.
	shown := eventType
	if eventType == source.Vanished {
		eventType = "DELETED" // only owners distinguish a missed deletion from a reported one
	}
	switch {
	case eventType == "DELETED":
		// A deletion always needs a pass, for event handlers and notifyDeleted.
		if pass = true; c.selector != nil && c.events == nil {
			eventType = indexes.EventLeft // with a selector, the object may only have stopped matching
		}
	case c.events == nil && c.ownership == nil && c.objects.CheckEcho(obj):
		// An own write that needs no pass, or an event during a pass.
	default:
		// Metrics measure the delay from here to the end of the change.
		pass = true
		c.objects.NoteEvent(obj)
		c.unhandled.NoteEvent(obj.GetUID(), time.Now())
	}
	// The order matters: indices must be current before a pass can run, and the pass is requested when this function
	// has returned.
	if c.journal != nil {
		c.journal.ForObject(obj.ObjectKey(), obj.GetUID()).RecordEvent(eventType, obj.GetResourceVersion())
	}
	if c.feed != nil {
		c.feed.HandleEvent(eventType, obj)
	}
	if c.events != nil {
		c.events.queueEvent(eventType, obj)
	}
	if c.ownership != nil {
		c.trackOwnership(shown, obj) // for owners, a child that stops matching the selector is gone
	}
	return pass
}

// NoteDeleted drops the memory of passes over the object, and stops its background handlers. It comes after NoteEvent:
// a pass that finds the deletion delivers the event to handlers, and then calls notifyDeleted.
func (c *Controller) NoteDeleted(obj source.Object) {
	c.disappearedObjects.addDeletedObject(obj)
	// Passes compare with this record, so that they do not store the memory of a deleted object again.
	c.objects.NoteDeletion(obj)
	c.background.ForgetObject(obj.GetUID())
	c.unhandled.ForgetObject(obj.GetUID())
}

// notifyDeleted reports the first deleted objects of a name to the dependents, after their event handlers were called.
func (c *Controller) notifyDeleted(key types.NamespacedName, count int) {
	c.forgetObjects(c.objects.TakeDeletions(key, count))
}

// wasDeletedMeanwhile reports whether the object was deleted since it was read from the cache. The informer removes an
// object from the cache first and from the memory second. A pass that acquires or returns memory in between would keep
// it forever. An older list can bring the object back under the same uid, so the cache is checked as well.
//
// Event handlers can run for long, and so can the gap between the informer's two updates; in that case only the cache
// is authoritative.
func (c *Controller) wasDeletedMeanwhile(key types.NamespacedName, uid types.UID) bool {
	if c.events == nil && !c.objects.WasDeleted(key, uid) {
		return false
	}
	cached := c.cachedObject(key)
	return cached == nil || cached.GetUID() != uid
}

// finishFirstListing runs after the first listing of a run, before any pass. Objects that are missing in it were
// deleted while no controller was running.
func (c *Controller) finishFirstListing() {
	// WaitForSync also returns when the run ends. An incomplete list must not count as deletions.
	if !c.hasSynced() {
		return
	}
	c.forgetMissingObjects(c.store.List())
	c.finishIndexListing()
}

// finishIndexListing ends the first listing, and reports the scope to the health and the readiness. It reports objects
// as deleted that only the indices contain: they were indexed while no controller was running, so the memory of passes
// does not have them.
func (c *Controller) finishIndexListing() {
	c.health.ReportSynced()
	if c.feed != nil {
		c.forgetObjects(c.feed.FinishList(c.lastSyncVersion()))
	}
	c.indicesFilled()
}

// forgetObjects reports deleted objects to the dependents, with [Dependencies.ForgetDelay].
func (c *Controller) forgetObjects(gone []types.UID) {
	deps := c.deps // of an ended controller, the timer must not keep the cache
	if deps.ForgetDelay > 0 && c.scope.Range.IsWhole() && len(gone) > 0 {
		time.AfterFunc(deps.ForgetDelay, func() { deps.forgetObjects(gone) })
		return
	}
	deps.forgetObjects(gone)
}

// forgetObjects reports objects that are deleted, or not served any more, to Forget and to the dependents.
func (d *Dependencies) forgetObjects(gone []types.UID) {
	for _, uid := range gone {
		if d.Forget != nil {
			d.Forget(uid)
		}
		if d.Dependents != nil {
			d.Dependents.Forget(uid)
		}
	}
}

// forgetMissingObjects drops the objects that existed at the end of the previous run and are not cached now.
func (c *Controller) forgetMissingObjects(cached []any) {
	// Missing objects get no event in this run, so their background handlers must be stopped here.
	gone := c.objects.ForgetMissing(cached)
	for _, uid := range gone {
		c.background.ForgetObject(uid)
	}
	c.deps.forgetObjects(gone)
}

// endRun remembers which objects exist, so that the next run can find deletions by comparing its listing. If the kind
// was removed, there may be no next run, so all objects are dropped.
func (c *Controller) endRun(ctx context.Context) {
	// An incomplete cache would make existing objects look deleted.
	if c.hasSynced() {
		c.objects.EndRun(c.store.List())
	}
	// Without a running controller, no object counts as unhandled: metrics must not report it as late.
	c.unhandled.ForgetAll()
	if !errors.Is(context.Cause(ctx), ErrRemoved) {
		return
	}
	c.forgetAllObjects()
}

// forgetAllObjects drops all objects that existed when the previous run ended.
func (c *Controller) forgetAllObjects() {
	c.forgetMissingObjects(nil)
	if c.indexer != nil {
		c.indexer.RemoveAll()
	}
}

// indicesFilled reports to the readiness that handlers need not wait for this scope.
func (c *Controller) indicesFilled() { c.turn.Readiness.MarkIndexed(c.scope.String()) }

// giveUpIndices lets handlers run without the indices of a kind that cannot be listed until an administrator changes
// the cluster. Otherwise one missing permission would block all kinds.
func (c *Controller) giveUpIndices(err error) {
	if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err) {
		if c.feed != nil {
			c.feed.GiveUp()
		}
		c.indicesFilled()
	}
}
