package controller

import (
	"context"
	"slices"
	"sync"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/internal/logging"
	"github.com/kopf-runtime/kopf-runtime/internal/patching"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/events"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/source"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/kind"
)

// eventHandling delivers the raw events of one kind. It queues them until a pass over their object calls the handlers.
type eventHandling struct {
	handling events.EventHandling
	// queue holds a limited number of events for each object.
	queue        events.Queue
	log          logr.Logger
	countDropped func() // counts an event that was dropped
}

// newEventHandling returns nil if there are no event handlers.
func newEventHandling(deps *Dependencies, of kind.HandledKind, watching []*adapters.HandlerChain) *eventHandling {
	if len(watching) == 0 {
		return nil
	}
	return &eventHandling{
		handling:     events.EventHandling{HandledKind: of, Handlers: watching, Loops: &events.Loops{}},
		log:          logging.OfKind(deps.Log, of.Resource.GroupVersionKind),
		countDropped: deps.Metrics.DroppedCounter(of.Resource.GroupKind().String()),
	}
}

// queueEvent queues an event for the next pass over its object. It runs on the informer's goroutine. If too many events
// wait, the oldest one of the object is dropped.
func (e *eventHandling) queueEvent(eventType string, obj source.Object) {
	if !e.queue.Add(events.RawEvent{Type: eventType, Object: obj}) {
		return
	}
	e.countDropped()
	log := logging.OfObject(e.log, obj.ObjectKey(), obj.GetUID())
	log.V(1).Info("Dropped the oldest event of an object: too many events wait for its handlers",
		"limit", events.MaxPendingEvents)
}

// notingWriter records the writes of change handlers, so that loop detection recognizes their events as own writes.
type notingWriter struct {
	kind.Writer
	loops *events.Loops
}

// ApplyRetrying writes the patch, and records the resource versions that it created. Versions of a failed write count,
// too: a part of it may have been written.
func (w notingWriter) ApplyRetrying(
	ctx context.Context, target patching.Target, patch patching.Patch,
) (patching.WriteResult, error) {
	result, err := w.Writer.ApplyRetrying(ctx, target, patch)
	object := unstructured.Unstructured{Object: target.Body}
	w.loops.NoteVersions(client.ObjectKeyFromObject(&object), result.Versions)
	return result, err
}

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
