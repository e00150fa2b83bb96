package controller

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/source"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/logging"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/panics"
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
		select {
		case <-ctx.Done():
		case <-time.After(min(result.RequeueAfter, maxPausedRetryDelay)):
		}
	}
}

// isPaused reports whether the gate of this turn is closed.
func (c *Controller) isPaused() bool { return c.turn.Gate != nil && !c.turn.Gate.Open() }
