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

// disappeared are the objects that the watch has reported as deleted, until a pass calls their optional deletion
// handlers. Nil is for kinds without such handlers.
type disappeared struct {
	waiting events.Queue

	mu      sync.Mutex
	handled map[types.UID]bool // those whose deletion passes have handled; the watch reports each of them later
}

// newDisappeared is nil if no handler is called for such objects.
func newDisappeared(kopfDeletions bool, changing []*adapters.Handler) *disappeared {
	sees := func(h *adapters.Handler) bool { return h.Description.SeesDisappearance() }
	if kopfDeletions || !slices.ContainsFunc(changing, sees) {
		return nil
	}
	return &disappeared{handled: map[types.UID]bool{}}
}

// add runs on the informer's goroutine. A pass follows.
func (d *disappeared) add(obj source.Object) {
	if d != nil {
		d.waiting.Add(events.Event{Type: events.Deleted, Object: obj})
	}
}

// noteHandled notes that a pass has handled the deletion of the object.
func (d *disappeared) noteHandled(uid types.UID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.handled[uid] = true
}

// takeHandled reports whether a pass has handled the deletion, and forgets the object.
func (d *disappeared) takeHandled(uid types.UID) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	handled := d.handled[uid]
	delete(d.handled, uid)
	return handled
}

// callForDisappeared calls the optional deletion handlers of the objects that had this name.
func (c *Controller) callForDisappeared(ctx context.Context, key types.NamespacedName) {
	for _, e := range c.disappeared.waiting.Take(key) {
		uid := e.Object.GetUID()
		if c.disappeared.takeHandled(uid) {
			continue
		}
		log := logging.OfObject(c.log, key, uid)
		last, err := e.Object.Open()
		if err != nil {
			log.Error(err, "Cannot read an object that has disappeared; not calling its optional deletion handlers")
			continue
		}
		c.changes.Disappeared(logf.IntoContext(ctx, log), last)
	}
}
