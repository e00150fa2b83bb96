package controller

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/internal/transport"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/source"
)

// recheckPause is the least time between two rechecks of all objects of a kind. Changes during the pause are merged.
const recheckPause = time.Second

// recheckNotifiers returns the sources besides the objects that the filters of the handlers read, each once.
func recheckNotifiers(own []*adapters.HandlerChain) (all []handlers.Notifier) {
	for _, h := range own {
		for _, one := range h.Description.RecheckOn {
			if !slices.Contains(all, one) {
				all = append(all, one)
			}
		}
	}
	return all
}

// beginRechecks requests a pass over each object whenever another source of its filters changes, until the returned
// function is called. Changes before handlers may run request nothing, as the first passes evaluate all filters anyway.
func (c *Controller) beginRechecks(ctx context.Context) (end func()) {
	if len(c.rechecks) == 0 {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	// The buffer of one merges all changes that come while a recheck is running.
	changed := make(chan struct{}, 1)
	var stops []func()
	for _, one := range c.rechecks {
		stops = append(stops, one.Notify(func() {
			// Handlers may not run before all indices are filled, and an index is such a source: do not recheck for
			// each entry of the first listing.
			if !c.turn.Readiness.IsOpen() {
				return
			}
			select {
			case changed <- struct{}{}:
			default: // a recheck is already requested
			}
		}))
	}
	var rechecking sync.WaitGroup
	rechecking.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-changed:
				c.requestRechecks()
				// Pause after each recheck, as each costs a pass per object.
				_ = transport.WaitDelay(ctx, recheckPause)
			}
		}
	})
	// First stop the notifications, then the goroutine.
	return func() {
		for _, stop := range stops {
			stop()
		}
		cancel()
		rechecking.Wait()
	}
}

// requestRechecks requests a pass over each cached object with the lowest priority, so that all other requests go
// first.
func (c *Controller) requestRechecks() {
	// The mark makes passes look at objects whose newest state is our own write.
	for _, item := range c.store.List() {
		if object, is := item.(source.Object); is {
			c.objects.RequestPass(object.ObjectKey())
			c.addToQueue(source.Request{NamespacedName: object.ObjectKey()}, 0,
				priorityOf(object, source.PriorityResume))
		}
	}
}
