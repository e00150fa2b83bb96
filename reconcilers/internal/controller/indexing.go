package controller

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/discovery"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/indexes"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/source"
)

// Index keeps the indices of a resource filled, in all the namespaces, as they come and go, while no controller of the
// same memory does, until the context ends. It tells the readiness what is filled. It calls the index functions, and
// writes nothing: any replica may do so.
func Index(
	ctx context.Context, deps *Dependencies, readiness *indexes.Readiness, r discovery.Resource, namespaces Namespaces,
	own []*adapters.Handler,
) {
	s := &scopes{
		deps: deps, turn: Turn{Readiness: readiness}, resource: r, handlers: own, workers: newWorkers(deps, r),
		indexing: true, running: map[string]scope{},
	}
	s.follow(ctx, namespaces)
}

// index watches the objects whenever nobody else does.
func (c *Controller) index(ctx context.Context) {
	ctx = logf.IntoContext(ctx, c.log)
	for {
		c.feed = c.indexer.BeginAlone(ctx, c.indexing(), c.indicesFilled)
		if c.feed == nil {
			return
		}
		err := c.indexOnce(ctx)
		switch {
		case errors.Is(context.Cause(ctx), ErrRemoved):
			c.forget(c.indexer.Clear())
			return
		case ctx.Err() != nil:
			return
		case err == nil: // somebody else has listed the objects
			c.indicesFilled()
			continue
		}
		c.log.Error(err, "Cannot index a resource; retrying", "after", restartPause.String())
		select {
		case <-ctx.Done():
		case <-time.After(restartPause):
		}
	}
}

func (c *Controller) indexing() indexes.Task {
	return indexes.Task{
		Handlers: c.handlers.Indexing, Resource: &c.resource, Backoff: c.deps.Settings.Backoff, Log: c.log,
	}
}

// indexOnce watches the objects until the context ends, or a controller has listed them, which is no error.
func (c *Controller) indexOnce(ctx context.Context) error {
	defer c.feed.End()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	informer, err := c.inform()
	if err != nil {
		return err
	}
	var listing sync.WaitGroup
	defer listing.Wait()
	defer cancel()
	informed := &source.Informed{
		Informer: informer, Events: source.Events{Watcher: indexOnly{c}}, Listed: c.listedForIndices,
	}
	if err := informed.Start(ctx, nil); err != nil {
		return fmt.Errorf("watching %s: %w", c.resource.GroupVersionKind, err)
	}
	listing.Go(func() { _ = informed.WaitForSync(ctx) })
	c.whileFeeding(ctx, informer)
	return nil
}

// whileFeeding runs the informer for as long as what it tells counts.
func (c *Controller) whileFeeding(ctx context.Context, informer toolscache.SharedIndexInformer) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		defer cancel()
		select {
		case <-ctx.Done():
		case <-c.feed.Over():
		}
	}()
	informer.RunWithContext(ctx)
}

// indexOnly is the watcher of a controller that fills indices and does nothing else.
type indexOnly struct{ *Controller }

var _ source.Watcher = indexOnly{}

// Listed does nothing: no pass follows.
func (indexOnly) Listed(source.Object) {}

// Deleted does nothing: nothing is kept of the object but its part of the indices.
func (indexOnly) Deleted(source.Object) {}

// Seen updates the indices. No other watcher reports the end of an object to what depends on that.
func (c indexOnly) Seen(eventType string, obj source.Object) (pass bool) {
	if eventType == source.Vanished {
		eventType = "DELETED"
	}
	if eventType == "DELETED" && c.selector != nil {
		eventType = indexes.Left // which may be all that has happened
	}
	if c.feed.Seen(eventType, obj) && eventType == "DELETED" {
		c.forget([]types.UID{obj.GetUID()})
	}
	return false
}
