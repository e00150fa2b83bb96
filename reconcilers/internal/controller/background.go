package controller

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"

	"github.com/kopf-runtime/kopf-runtime/internal/execution"
	"github.com/kopf-runtime/kopf-runtime/internal/jsontext"
	"github.com/kopf-runtime/kopf-runtime/internal/logging"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/background"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/source"
)

var _ background.Service = (*Controller)(nil)

// forgetEnded returns the function that reports a deleted object to the dependents when its last background handler has
// ended. As long as event handlers are still called for the deletion, [Controller.notifyDeleted] does it after them.
func (c *Controller) forgetEnded() func(key types.NamespacedName, uid types.UID) {
	objects, forget := c.objects, c.deps.Forget
	if forget == nil {
		return nil
	}
	return func(key types.NamespacedName, uid types.UID) {
		if !objects.WasDeleted(key, uid) {
			forget(uid)
		}
	}
}

// beginBackground lets background handlers run until the context ends or the returned function is called. That function
// waits for the handlers to stop. If the operator exits during the wait, they get the shorter time of an exit.
func (c *Controller) beginBackground(ctx context.Context) (end func()) {
	own, resource := c.newKind(), c.resource
	// The supervisor outlives the controller, so it must not keep the controller's cache or slots.
	own.Resource, own.Cache, own.Slot = &resource, nil, nil
	own.Settings.PauseTimeout = c.pauseTimeout()
	c.background.AllowStarts(background.KindSettings{
		HandledKind: own, Handlers: c.handlers.Background, Range: c.scope.Range,
		Permission: c.deps.writePermission(c.scope), OnForgotten: c.forgetEnded(), Log: c.log,
	}, c)
	// Stop the background handlers as soon as the context ends, while change handlers may still run. If a pause turns
	// into an exit, stop them again with the new reason.
	ended, stopped := make(chan struct{}), make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(stopped)
		c.background.StopAll(stopReason(ctx))
		select {
		case <-ended:
		case <-c.deps.Exiting:
			c.background.StopAll(background.Exiting)
		}
	})
	return func() {
		// End stops the handlers and waits for them. The channel then ends the wait for an exit above.
		c.background.StopAndWait(stopReason(ctx))
		close(ended)
		if !stop() {
			<-stopped // a late Stop would end the handlers of the next run
		}
	}
}

// stopReason returns why background handlers must stop. Only the end of the whole operator counts as an exit; a restart
// or a removal of the kind counts as a pause.
func stopReason(ctx context.Context) background.StopReason {
	if isOperatorExiting(ctx) {
		return background.Exiting
	}
	return background.Pausing
}

// isOperatorExiting reports whether the context ended because the operator exits.
func isOperatorExiting(ctx context.Context) bool {
	cause := context.Cause(ctx)
	// A context without a cause has not ended.
	for _, pausing := range []error{ErrRestarting, ErrRemoved, execution.ErrPaused} {
		if cause == nil || errors.Is(cause, pausing) {
			return false
		}
	}
	return true
}

// fireTimer starts one tick of a timer, unless the object is gone from the cache.
func (c *Controller) fireTimer(request source.Request) {
	if cached := c.cachedObject(request.NamespacedName); cached != nil {
		c.background.FireTimer(cached.GetUID(), request.Handler)
	}
}

// Newest returns the cached object, or nil if the cache does not have this uid. It does not include own writes that the
// cache has not received yet.
func (c *Controller) Newest(key types.NamespacedName, uid types.UID) *jsontext.LazyObject {
	cached := c.cachedObject(key)
	if cached == nil || cached.GetUID() != uid {
		return nil
	}
	// Undecodable objects are shown as gone, because background handlers cannot work with them.
	opened, err := cached.Open()
	if err != nil {
		c.logUnreadableObject(key, uid, err)
	}
	return opened
}

// Latest returns the same state as [Controller.Newest], decoded.
func (c *Controller) Latest(key types.NamespacedName, uid types.UID) map[string]any {
	body, err := c.Newest(key, uid).Value()
	if err != nil {
		c.logUnreadableObject(key, uid, err)
	}
	return body
}

// logUnreadableObject logs a cached object that cannot be decoded. Callers continue as for a deleted object.
func (c *Controller) logUnreadableObject(key types.NamespacedName, uid types.UID, err error) {
	logging.OfObject(c.log, key, uid).Error(err, "Cannot read an object; going on as if it was gone")
}

// Enqueue requests a pass over the object after the delay; or, with the id of a timer, a tick of that timer.
func (c *Controller) Enqueue(key types.NamespacedName, handler string, after time.Duration) {
	// Ticks have their own class in the queue, so their priority only matters among themselves.
	priority := source.PriorityTimer
	if handler == "" {
		// Without the mark, the pass would skip an object whose newest state is our own write.
		c.objects.RequestPass(key)
		priority = priorityOf(c.cachedObject(key), source.PriorityChange)
	}
	c.addToQueue(source.Request{NamespacedName: key, Handler: handler}, after, priority)
}

// addToQueue puts a request into the queue that does not come from an event. It drops the request if no run of the
// controller has created a queue yet: the first listing then requests a pass over every object.
func (c *Controller) addToQueue(request source.Request, after time.Duration, priority int) {
	if waiting := c.queue.Load(); waiting != nil {
		waiting.AddWithOpts(priorityqueue.AddOpts{After: after, Priority: &priority}, request)
	}
}
