package controller

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/internal/discovery"
	"github.com/kopf-runtime/kopf-runtime/internal/transport"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/indexes"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/memory"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/source"
)

// RunIndexing keeps the indices of a resource filled until the context ends, in all of the namespaces as they come and
// go. It is for times when no controller of the resource runs, such as a pause. It reports filled indices to the
// readiness. It calls index functions but writes nothing, so any replica may run it.
func RunIndexing(
	ctx context.Context, deps *Dependencies, readiness *indexes.Readiness, r discovery.Resource, namespaces Namespaces,
	own []*adapters.HandlerChain,
) {
	s := &scopeControllers{
		deps: deps, turn: Turn{Readiness: readiness}, resource: r, handlers: own, siblings: own,
		workers: newWorkers(deps, r), indexing: true, byScope: map[memory.KindScope]scopeController{},
	}
	s.followScopes(ctx, namespaces)
}

// runIndexing fills the indices of one scope while no controller does, until the context ends.
func (c *Controller) runIndexing(ctx context.Context) {
	ctx = logf.IntoContext(ctx, c.log)
	defer c.health.ReportEnd()
	for {
		// Wait until no controller feeds the indices of this scope.
		c.feed = c.indexer.BeginAlone(ctx, c.indexingTask(), c.indicesFilled)
		if c.feed == nil {
			return
		}
		// A nil error without the end of the context means that a controller took over.
		err := c.indexOnce(ctx)
		switch {
		case errors.Is(context.Cause(ctx), ErrRemoved):
			c.deps.forgetObjects(c.indexer.RemoveAll())
			return
		case ctx.Err() != nil:
			// The indices remain: another run or a controller continues with them.
			return
		case err == nil: // a controller has listed the objects meanwhile, and took over
			c.indicesFilled()
			continue
		}
		c.log.Error(err, "Cannot index a resource; retrying", "after", restartPause.String())
		_ = transport.WaitDelay(ctx, restartPause)
	}
}

// indexingTask describes the work of the indexer for this kind.
func (c *Controller) indexingTask() indexes.IndexTask {
	return indexes.IndexTask{
		Handlers: c.handlers.Indexing, Resource: &c.resource, Backoff: c.deps.Settings.Backoff, Log: c.log,
	}
}

// indexOnce watches the objects until the context ends or a controller has listed them. Neither is an error.
func (c *Controller) indexOnce(ctx context.Context) error {
	defer c.feed.EndFeed()
	c.health.ReportStart()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	informer, err := c.newInformer()
	if err != nil {
		return err
	}
	// The order of the deferred calls matters: the context ends first, then the wait for the sync returns.
	var listing sync.WaitGroup
	defer listing.Wait()
	defer cancel()
	informed := &source.InformerSource{
		Informer: informer, Events: source.Events{Observer: indexOnly{c}}, OnListed: c.finishIndexListing,
	}
	if err := informed.Start(ctx, nil); err != nil {
		return fmt.Errorf("watching %s: %w", c.resource.GroupVersionKind, err)
	}
	listing.Go(func() { _ = informed.WaitForSync(ctx) })
	c.whileFeeding(ctx, informer)
	return nil
}

// whileFeeding runs the informer until the context ends or a later feed has taken over.
func (c *Controller) whileFeeding(ctx context.Context, informer toolscache.SharedIndexInformer) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		defer cancel()
		select {
		case <-ctx.Done():
		case <-c.feed.Done():
		}
	}()
	informer.RunWithContext(ctx)
}

// indexOnly watches for a controller that only fills indices. It embeds the controller for its helpers, and replaces
// the methods of the watcher.
type indexOnly struct{ *Controller }

var _ source.EventObserver = indexOnly{}

// NoteListed does nothing, because no resume handlers run.
func (indexOnly) NoteListed(source.Object) {}

// NoteDeleted does nothing, because the only memory of the object is its part of the indices.
func (indexOnly) NoteDeleted(source.Object) {}

// NoteEvent updates the indices, and never requests a pass. It reports the deletion of an object to the dependents
// itself, because no controller of the scope does it at this time.
func (c indexOnly) NoteEvent(eventType string, obj source.Object) (pass bool) {
	// Only owners of children distinguish a missed deletion from a reported one.
	if eventType == source.Vanished {
		eventType = "DELETED"
	}
	if eventType == "DELETED" && c.selector != nil {
		eventType = indexes.EventLeft // with a selector, the object may only have stopped matching
	}
	if c.feed.HandleEvent(eventType, obj) && eventType == "DELETED" {
		c.forgetObjects([]types.UID{obj.GetUID()})
	}
	return false
}
