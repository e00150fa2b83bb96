package controller

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/internal/compact"
	"github.com/kopf-runtime/kopf-runtime/internal/logging"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/memory"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/source"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/kind"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/owned"
)

// ownership holds the parent/child wiring of one kind, which may be a parent, a child, or both.
type ownership struct {
	// all handlers of the kind; Owning ones watch children, Tending ones are called for them
	families    adapters.Families
	handling    owned.ChildHandling // calls the Tending handlers
	source      *owned.ChildSource  // of one run; nil if the objects are not children
	route       *owned.Route        // of one run; nil if the objects are not parents
	isWatchOnly bool                // the kind is only watched for the handlers of other kinds
	lookup      owned.CacheLookup   // nil if no handler waits for objects other than children
}

// newOwning returns nil if the kind is neither a parent nor a child.
func (c *Controller) newOwning(of kind.HandledKind, families adapters.Families) *ownership {
	known := c.deps.Children
	if known == nil || len(families.Parent)+len(families.Child) == 0 {
		return nil
	}
	return &ownership{
		families: families, lookup: c.cacheLookupFor(families.Parent),
		// Handlers of the kind itself need passes; Owning handlers do not.
		isWatchOnly: len(families.Changing)+len(families.Watching)+len(families.Background)+len(families.Indexing)+
			len(families.Admitting)+len(families.Child) == 0,
		handling: owned.ChildHandling{HandledKind: of, Children: known, Handlers: families.Child},
	}
}

// beginChildTracking connects the kind to the tracker of children for one run. The returned function disconnects it. A
// nil receiver does nothing.
func (o *ownership) beginChildTracking(enqueue func(types.NamespacedName)) (end func()) {
	if o == nil {
		return func() {}
	}
	known := o.handling.Children
	// The former run has ended: its source and route must not be used again.
	o.source, o.route = nil, nil
	if len(o.families.Parent) > 0 {
		o.source = known.StartSource(adapters.DescriptionsOf(o.families.Parent), o.lookup)
	}
	if len(o.families.Child) > 0 {
		kind := o.handling.Resource.GroupKind()
		o.route = known.StartRoute(kind, adapters.DescriptionsOf(o.families.Child), o.handling.Cache, enqueue)
	}
	return func() {
		if o.source != nil {
			o.source.EndRun()
		}
		if o.route != nil {
			o.route.EndRun()
		}
	}
}

// cacheLookupFor returns a lookup in the cache of the kind. It returns nil if handlers wait for children only, as the
// informer may then drop the contents of other objects.
func (c *Controller) cacheLookupFor(owning []*adapters.HandlerChain) owned.CacheLookup {
	if !slices.ContainsFunc(owning, func(h *adapters.HandlerChain) bool { return h.Description.AllowAnyObject }) {
		return nil
	}
	return func(kind schema.GroupKind, key types.NamespacedName) *compact.CachedObject {
		if kind != c.resource.GroupKind() {
			return nil
		}
		return c.cachedObject(key)
	}
}

// trackOwnership reports an event to the owners of the object, and to the tracker of its own children. It runs on the
// informer's goroutine.
func (c *Controller) trackOwnership(eventType string, obj source.Object) {
	o := c.ownership
	if o.source != nil {
		// An object that cannot be decoded is only logged, because the next event repeats the state.
		if err := o.source.HandleEvent(eventType, obj); err != nil {
			log := logging.OfObject(c.log, obj.ObjectKey(), obj.GetUID())
			log.Error(err, "Cannot read an object; its owners are not notified")
		}
	}
	switch {
	case o.route == nil:
	case eventType == owned.Deleted, eventType == owned.Vanished:
		o.route.NoteDeleted(obj.GetUID())
	default:
		o.route.NoteEvent(obj.GetUID(), obj.ObjectKey())
	}
}

// enqueueOwner requests a pass over an owner.
func (c *Controller) enqueueOwner(key types.NamespacedName) { c.Enqueue(key, "", 0) }

// reconcileChildren calls the child handlers of an object at the end of its pass. It returns the delay until the next
// pass: the smaller one of the given delay and that of the child handlers. It skips an object that was replaced or
// released meanwhile.
func (c *Controller) reconcileChildren(
	ctx context.Context, o *memory.ObjectState, latest *compact.CachedObject, uid types.UID, after *time.Duration,
) *time.Duration {
	// The kind has no child handlers, or the object is gone, replaced or released.
	if c.ownership.route == nil || latest == nil || latest.GetUID() != uid || o.HasEnded(latest) {
		return after
	}
	newest, err := o.NewestState(latest)
	if err != nil {
		logf.FromContext(ctx).Error(err, "Cannot read an object; leaving its children alone")
		return after
	}
	// The children of a paused object are left alone, too.
	if c.ownership.handling.IsPausedIn(newest, latest.IsDeleting()) {
		return after
	}
	body, _ := newest.Value() // Newest has decoded it without an error
	result := c.ownership.handling.ReconcileChildren(ctx, body)
	o.NoteWrite(result.Body, result.Released)
	if result.RequeueAfter != nil {
		o.RequirePass() // otherwise an echo of our own write would skip the pass that is due later
	}
	// Return the earlier time.
	if result.RequeueAfter != nil && (after == nil || *result.RequeueAfter < *after) {
		return result.RequeueAfter
	}
	return after
}

// handlerIDs returns the ids of all handlers that need the objects of this kind, each once, for log lines.
func (c *Controller) handlerIDs() (ids []string) {
	f := c.handlers
	for _, family := range [][]*adapters.HandlerChain{f.Changing, f.Background, f.Watching, f.Indexing, f.Parent,
		f.Child} {
		for _, h := range family {
			if id := h.Description.ID; !slices.Contains(ids, id) {
				ids = append(ids, id)
			}
		}
	}
	return ids
}
