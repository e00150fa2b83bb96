package controller

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/source"
)

// recheckPause is the time between two rechecks of all objects of a kind. Changes in between are one.
const recheckPause = time.Second

// notifiers returns the other sources that the filters of the handlers read beside the objects, each once.
func notifiers(own []*adapters.Handler) (all []handlers.Notifier) {
	for _, h := range own {
		for _, one := range h.Description.RecheckOn {
			if !slices.Contains(all, one) {
				all = append(all, one)
			}
		}
	}
	return all
}

// beginRechecks requests a pass over each object after changes of the other sources that filters read, until the
// returned function is called. Changes before the first pass of the operator request nothing.
func (c *Controller) beginRechecks(ctx context.Context) (end func()) {
	if len(c.rechecks) == 0 {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	changed := make(chan struct{}, 1)
	var stops []func()
	for _, one := range c.rechecks {
		stops = append(stops, one.Notify(func() {
			if !c.turn.Readiness.Open() {
				return
			}
			select {
			case changed <- struct{}{}:
			default: // a recheck is requested already
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
				c.recheck()
			}
			select {
			case <-ctx.Done():
				return
			case <-time.After(recheckPause):
			}
		}
	})
	return func() {
		for _, stop := range stops {
			stop()
		}
		cancel()
		rechecking.Wait()
	}
}

// recheck requests a pass over each object, after everything that is more urgent.
func (c *Controller) recheck() {
	for _, item := range c.store.List() {
		if object, is := item.(source.Object); is {
			c.objects.Wake(object.Key())
			c.add(source.Request{NamespacedName: object.Key()}, 0, priorityOf(object, source.PriorityResume))
		}
	}
}
