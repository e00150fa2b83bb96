package controller

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	toolscache "k8s.io/client-go/tools/cache"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/internal/discovery"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/internal/logging"
	"github.com/kopf-runtime/kopf-runtime/internal/transport"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/memory"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/source"
)

// restartPause is the delay before a failed controller starts again.
const restartPause = 10 * time.Second

// newController creates the controller of one scope, with its own handlers and all handlers of the resource. It does
// not start anything. It takes the memory of an earlier controller of the same scope.
func newController(
	deps *Dependencies, turn Turn, r discovery.Resource, scope memory.KindScope, own, all []*adapters.HandlerChain,
	w *workers,
) *Controller {
	// Handlers, background supervisors and indices of the scope survive restarts of the controller in this memory.
	kept := deps.Memory.MemoryOf(scope)
	families := adapters.ByFamily(own)
	c := &Controller{
		deps: deps, turn: turn, resource: r, scope: scope, health: deps.Health.Scope(scope.String()),
		log: logging.OfKind(deps.Log, r.GroupVersionKind), handlers: families,
		journal: deps.JournalOf(r, all), decodeType: commonDecodeType(own),
		workers: w, rechecks: recheckNotifiers(own), objects: kept.Objects, background: kept.Background,
		disappearedObjects: newDisappeared(deps.Settings.KopfDeletions, families.Changing),
	}
	of := c.newKind()
	// Event handlers must recognize the writes of change handlers as own writes, or both kinds of handlers could
	// trigger each other endlessly. So these writes pass through a writer that records them.
	c.changes = newChanges(deps, of, own, all)
	c.reachability.logRecovery = func() {
		c.log.Info("Listing and watching a resource again", "handlers",
			c.handlerIDs())
	}
	if c.events = newEventHandling(deps, of, families.Watching); c.events != nil {
		c.changes.Writer = notingWriter{of.Writer, c.events.handling.Loops}
	}
	// Only a pass decides which background handlers match, so change handling starts and stops them.
	if len(families.Background) > 0 {
		c.changes.Background = c.background
	}
	c.ownership = c.newOwning(of, families)
	if len(families.Indexing) > 0 {
		c.indexer = kept.Indexer
	}
	// Tracking costs memory for each unfinished object, so it depends on metrics.
	if len(families.Changing) > 0 && deps.Metrics != nil {
		c.unhandled = kept.Unhandled
	}
	// Dependencies.Forget must receive the end of every handled object. A selector would hide the end of those that
	// stopped matching, so a watch with a selector is only possible without Forget, or for kinds without handlers of
	// their own.
	if deps.Forget == nil || c.isWatchOnly() {
		c.selector = handlers.SharedLabels(adapters.DescriptionsOf(own))
	}
	return c
}

// beginMemory prepares the memory of the scope for a controller that handles objects, not only indices. If there are
// resume handlers, the objects of the first listing will be marked for them.
func (c *Controller) beginMemory() {
	c.objects.BeginRun(slices.ContainsFunc(c.handlers.Changing, func(h *adapters.HandlerChain) bool {
		return h.Description.Initial
	}))
}

// runWithRestarts serves the kind until the context ends, and restarts after failures. A failure of one kind does not
// affect others.
func (c *Controller) runWithRestarts(ctx context.Context) {
	ctx = logf.IntoContext(ctx, c.log)
	defer c.health.ReportEnd()
	for ctx.Err() == nil {
		err := c.runOnce(ctx)
		if ctx.Err() != nil {
			return
		}
		// Only an error of the framework ends a run early: failures of lists and watches are retried by the informer.
		c.log.Error(err, "Controller failed; restarting it", "after", restartPause.String())
		_ = transport.WaitDelay(ctx, restartPause)
	}
}

// runOnce runs an informer and a controller on it, until the controller fails or the context ends. It returns when both
// have ended.
func (c *Controller) runOnce(ctx context.Context) error {
	// The informer gets a context of its own, because it must end when the controller fails.
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	c.health.ReportStart()
	if c.indexer != nil {
		// The entries of a former feed stay in the indices until this one has listed all objects.
		c.feed = c.indexer.BeginFeed(c.indexingTask())
		defer c.feed.EndFeed()
	}
	informer, err := c.newInformer()
	if err != nil {
		return err
	}
	var informing sync.WaitGroup
	// Start the informer before the controller: the source only waits for its sync.
	informing.Go(func() { informer.RunWithContext(ctx) })
	err = c.runQueuedController(ctx, informer)
	cancel(nil)
	informing.Wait()
	return err
}

// runQueuedController runs the controller on an informer until the context ends. Its deferred calls stop the parts in
// the reverse order: passes first, then lookups and rechecks, then children, and background handlers last.
func (c *Controller) runQueuedController(ctx context.Context, informer toolscache.SharedIndexInformer) error {
	defer c.beginBackground(ctx)()
	defer c.ownership.beginChildTracking(c.enqueueOwner)()
	defer c.beginRechecks(ctx)()
	queued, err := c.newQueued()
	if err != nil {
		return fmt.Errorf("making the controller of %s: %w", c.resource.GroupVersionKind, err)
	}
	events := source.Events{Observer: c}
	// With a selector, a deletion event is ambiguous: the object may still exist without matching.
	if departing := c.newDepartureTracker(); departing != nil {
		defer departing.startLookups(ctx)()
		events.Departures = departing
	}
	informed := &source.InformerSource{Informer: informer, Events: events, OnListed: c.finishFirstListing}
	if err := queued.Watch(informed); err != nil {
		return fmt.Errorf("watching %s: %w", c.resource.GroupVersionKind, err)
	}
	// From here on, passes can begin.
	defer c.endRun(ctx)
	c.unwrittenObjects.beginRun()
	endPasses := c.beginPasses(ctx)
	// Start returns when the context ends or the controller fails. No further pass begins after it, but passes may
	// still run.
	err = queued.Start(ctx)
	// First count objects with unsaved results as passes, then wait for all of them, then end their context.
	c.writeRemaining()
	c.passes.Wait() // queued has only handed the passes over to goroutines
	endPasses()
	return err
}
