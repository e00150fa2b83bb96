package controller

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/background"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/source"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/logging"
	"github.com/kopf-runtime/kopf-runtime/storage/jsontext"
)

var _ background.Service = (*Controller)(nil)

// beginBackground lets the background handlers run until the context ends, or what it gives is called, which waits for
// them, and for a shorter time when the operator exits meanwhile.
func (c *Controller) beginBackground(ctx context.Context) (end func()) {
	own, resource := c.newKind(), c.resource
	own.Resource, own.Cache, own.Place = &resource, nil, nil // the supervisor outlives the controller
	c.background.Begin(background.Settings{
		Kind: own, Handlers: c.handlers.Spawning,
		Permission: c.deps.permission(c.scope.Namespace), Forgotten: c.deps.Forget, Log: c.log,
	}, c)
	// At once, while handlers of changes are still waited for.
	ended, stopped := make(chan struct{}), make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(stopped)
		c.background.Stop(stopReason(ctx))
		select {
		case <-ended:
		case <-c.deps.Exiting:
			c.background.Stop(background.Exiting)
		}
	})
	return func() {
		c.background.End(stopReason(ctx))
		close(ended)
		if !stop() {
			<-stopped // it must not come after the next beginning
		}
	}
}

// stopReason is what background handlers are told: only the end of the operator itself is an exit.
func stopReason(ctx context.Context) background.Reason {
	if exiting(ctx) {
		return background.Exiting
	}
	return background.Pausing
}

// exiting tells whether the context has ended because the operator exits.
func exiting(ctx context.Context) bool {
	cause := context.Cause(ctx)
	for _, pausing := range []error{ErrRestarting, ErrRemoved, execution.ErrPaused} {
		if cause == nil || errors.Is(cause, pausing) {
			return false
		}
	}
	return true
}

// fireTimer begins a tick of a timer, if there is one.
func (c *Controller) fireTimer(request source.Request) {
	if cached := c.cached(request.NamespacedName); cached != nil {
		c.background.Fire(cached.GetUID(), request.Handler)
	}
}

// Newest is what the cache has.
func (c *Controller) Newest(key types.NamespacedName, uid types.UID) *jsontext.Object {
	cached := c.cached(key)
	if cached == nil || cached.GetUID() != uid {
		return nil
	}
	opened, err := cached.Open()
	if err != nil {
		c.unreadable(key, uid, err)
	}
	return opened
}

// Latest is Newest decoded.
func (c *Controller) Latest(key types.NamespacedName, uid types.UID) map[string]any {
	body, err := c.Newest(key, uid).Value()
	if err != nil {
		c.unreadable(key, uid, err)
	}
	return body
}

func (c *Controller) unreadable(key types.NamespacedName, uid types.UID, err error) {
	logging.OfObject(c.log, key, uid).Error(err, "Cannot read an object; going on as if it was gone")
}

// Enqueue has a look taken at the object, or a tick.
func (c *Controller) Enqueue(key types.NamespacedName, handler string, after time.Duration) {
	priority := source.PriorityTimer
	if handler == "" {
		c.objects.Wake(key)
		priority = priorityOf(c.cached(key), source.PriorityChange)
	}
	c.add(source.Request{NamespacedName: key, Handler: handler}, after, priority)
}

// add asks for what no event asks for. Before the first run, there is nobody to ask.
func (c *Controller) add(request source.Request, after time.Duration, priority int) {
	if waiting := c.queue.Load(); waiting != nil {
		waiting.AddWithOpts(priorityqueue.AddOpts{After: after, Priority: &priority}, request)
	}
}
