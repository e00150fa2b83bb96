package controller

import (
	"context"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/events"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/source"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/logging"
)

// disappearedObjects holds the objects that the watch reported as deleted, until a pass calls their optional deletion
// handlers. An object without our finalizer has no other moment for them. Nil stands for a kind without such handlers.
type disappearedObjects struct {
	// deletedObjects holds the deleted objects by name, as a queue of DELETED events.
	deletedObjects events.Queue

	mu      sync.Mutex
	handled map[types.UID]bool // uids whose deletion a pass has handled before the watch reported it
}

// newDisappeared returns nil if no deletion handler is optional. It also returns nil with Settings.KopfDeletions,
// because Kopf calls no handlers for such objects.
func newDisappeared(kopfDeletions bool, changing []*adapters.HandlerChain) *disappearedObjects {
	sees := func(h *adapters.HandlerChain) bool { return h.Description.SeesDisappearance() }
	if kopfDeletions || !slices.ContainsFunc(changing, sees) {
		return nil
	}
	return &disappearedObjects{handled: map[types.UID]bool{}}
}

// addDeletedObject queues a deleted object for the next pass, which the caller requests. It runs on the informer's
// goroutine. A nil receiver ignores the object.
func (d *disappearedObjects) addDeletedObject(obj source.Object) {
	if d != nil {
		d.deletedObjects.Add(events.RawEvent{Type: events.Deleted, Object: obj})
	}
}

// noteHandled records that a pass has handled the deletion of the object, so that callForDisappeared skips it.
func (d *disappearedObjects) noteHandled(uid types.UID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.handled[uid] = true
}

// takeHandled reports whether a pass has handled the deletion of the object, and removes that record.
func (d *disappearedObjects) takeHandled(uid types.UID) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	handled := d.handled[uid]
	delete(d.handled, uid)
	return handled
}

// callForDisappeared calls the optional deletion handlers of the deleted objects with this name. There can be several,
// if an object was created again under the same name.
func (c *Controller) callForDisappeared(ctx context.Context, key types.NamespacedName) {
	for _, e := range c.disappearedObjects.deletedObjects.TakeAll(key) {
		uid := e.Object.GetUID()
		if c.disappearedObjects.takeHandled(uid) {
			continue
		}
		log := logging.OfObject(c.log, key, uid)
		last, err := e.Object.Open()
		if err != nil {
			log.Error(err, "Cannot read an object that has disappeared; not calling its optional deletion handlers")
			continue
		}
		c.changes.HandleDisappearance(logf.IntoContext(ctx, log), last)
	}
}
