package controller

import (
	"context"
	"errors"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-runtime/kopf-runtime/internal/execution"
	"github.com/kopf-runtime/kopf-runtime/internal/logging"
	"github.com/kopf-runtime/kopf-runtime/internal/panics"
	"github.com/kopf-runtime/kopf-runtime/internal/transport"
	"github.com/kopf-runtime/kopf-runtime/peering/sharding"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/source"
)

// maxPausedRetryDelay is the longest delay between two attempts to write during a pause. Running work has little time
// after a pause has begun, so the usual backoff would be too slow.
const maxPausedRetryDelay = 5 * time.Second

// unwrittenObjects holds the objects whose results are not stored yet, from the end of one pass to the start of the
// next. The gate counts each of them like a running handler, so that a peer does not take over before they are stored.
type unwrittenObjects struct {
	mu   sync.Mutex
	keys map[types.NamespacedName]bool // nil after the end of the run
}

// beginRun starts a run with no objects.
func (u *unwrittenObjects) beginRun() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.keys = map[types.NamespacedName]bool{}
}

// addKey adds an object. It returns false after the end of the run: no later pass can store the results.
func (u *unwrittenObjects) addKey(key types.NamespacedName) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.keys == nil {
		return false
	}
	u.keys[key] = true
	return true
}

// takeRemaining returns the remaining objects. From then on, addKey rejects objects.
func (u *unwrittenObjects) takeRemaining() map[types.NamespacedName]bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	// The lock makes this atomic: an object is either returned here, or rejected by [unwrittenObjects.addKey].
	left := u.keys
	u.keys = nil
	return left
}

// mergeUnwrittenCount ends the separate count of an object whose previous pass left unsaved results. The pass that has
// just entered counts for both. It returns whether there was such a count. Timer ticks write nothing, and keep the
// count.
func (c *Controller) mergeUnwrittenCount(request source.Request) (counted bool) {
	if request.Handler != "" {
		return false
	}
	// The same lock guards the set of objects and its end, so that the count of an object ends only once.
	c.unwrittenObjects.mu.Lock()
	defer c.unwrittenObjects.mu.Unlock()
	if counted = c.unwrittenObjects.keys[request.NamespacedName]; counted {
		delete(c.unwrittenObjects.keys, request.NamespacedName)
		c.leaveGate()
	}
	return counted
}

// keepCounted keeps the object counted in the gate until a later pass has stored its results, and returns true. If no
// later pass can begin, it retries until the results are stored or it must stop, and returns false.
func (c *Controller) keepCounted(ctx context.Context, request source.Request) bool {
	// After the end of the run, addKey returns false, because no later pass would remove the object from the set.
	if !c.isPaused() && c.unwrittenObjects.addKey(request.NamespacedName) {
		return true
	}
	c.retryDuringPause(ctx, request)
	return false
}

// writeRemaining starts to store the remaining results when a run has ended and no more passes begin. It does not wait;
// the caller waits for passes to end.
func (c *Controller) writeRemaining() {
	for key := range c.unwrittenObjects.takeRemaining() {
		c.passes.Go(func() {
			// The pass that left the results has already ended, so the count of the object ends here.
			defer c.leaveGate()
			c.retryDuringPause(c.passContext, source.Request{NamespacedName: key})
		})
	}
}

// retryDuringPause repeats passes over an object during a pause, until its results are stored, the pause ends, or ctx
// ends. If results are not stored before that, the next operator runs the same handlers again.
func (c *Controller) retryDuringPause(ctx context.Context, request source.Request) {
	if c.isPaused() {
		// After a pause has begun, there is no time for the delays of earlier failures.
		c.objects.ClearThrottle(c.cachedUID(request.NamespacedName))
	}
	// If the gate opens, a normal pass can store the results.
	for c.isPaused() && ctx.Err() == nil {
		result, left, err := c.runRequestSafely(ctx, request, true)
		if err != nil {
			log := logging.OfObject(c.log, request.NamespacedName, c.cachedUID(request.NamespacedName))
			log.Error(err, "Failed to write in a pause what handlers did to an object; they may be called for it again",
				panics.StackFields(err)...)
		}
		// Stop if everything is stored, or if the pass does not request another one, as for a blocked object or after a
		// panic.
		if !left || result.RequeueAfter <= 0 {
			return
		}
		// Wait for the requested delay, but not for longer than maxPausedRetryDelay.
		_ = transport.WaitDelay(ctx, min(result.RequeueAfter, maxPausedRetryDelay))
	}
}

// beginPasses sets the context of the passes of one run. That context outlives the context of the run, so that running
// handlers can finish. When the operator exits, they have Settings.ExitTimeout. When it is paused, they have
// Settings.PauseTimeout, as long as writing is permitted; an exit during that time switches to ExitTimeout. When
// another controller takes over the objects, or none serves them any more, the context ends at once.
//
// The returned function ends the context. It is called when all passes have returned.
func (c *Controller) beginPasses(ctx context.Context) (end func()) {
	// WithoutCancel keeps the values of the context, such as the logger, but not its end.
	passing, cancel := context.WithCancelCause(sharding.WithRange(context.WithoutCancel(ctx), c.scope.Range))
	c.passContext = passing
	ended := make(chan struct{})
	last := grace{ended: ended, abandoned: c.deps.Abandoned, permissionEnded: c.deps.writePermission(c.scope).Done()}
	stop := context.AfterFunc(ctx, func() {
		cause, exits := context.Cause(ctx), isOperatorExiting(ctx)
		// ErrPaused first waits for the pause; true means that the operator exits meanwhile.
		if errors.Is(cause, execution.ErrPaused) && last.waitForEnd(c.pauseTimeout(), c.deps.Exiting) {
			cause, exits = execution.ErrExiting, true
		}
		if exits {
			last.waitForEnd(c.deps.Settings.ExitTimeout, nil)
		}
		// Handlers see this cause, such as ErrPaused or ErrExiting.
		cancel(cause)
	})
	return func() {
		stop()
		close(ended)
		cancel(nil)
	}
}

// grace describes how long running handlers may finish: until all have ended, until the manager stops waiting for the
// operator, or until writing is not permitted any more.
type grace struct {
	ended, abandoned, permissionEnded <-chan struct{}
}

// waitForEnd blocks until the grace is over or the timeout has passed. It returns true if the interrupting channel
// closed first.
func (g grace) waitForEnd(timeout time.Duration, interrupted <-chan struct{}) bool {
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case <-interrupted:
		return true
	case <-g.ended:
	case <-g.abandoned:
	case <-g.permissionEnded:
	case <-timer.C:
	}
	return false
}
