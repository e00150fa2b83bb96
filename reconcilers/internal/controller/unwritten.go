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

// slowestInsistence is the longest delay between two attempts to write during a pause. A pause is short, so the usual
// backoff would be too slow.
const slowestInsistence = 5 * time.Second

// unwritten holds the objects with results that are not stored yet, between their passes. Each counts in the gate like
// a running handler, so that a pause gives the other operator no turn before they are stored.
type unwritten struct {
	mu   sync.Mutex
	keys map[types.NamespacedName]bool // nil after the end of the run
}

// beginRun starts a run with no objects.
func (u *unwritten) beginRun() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.keys = map[types.NamespacedName]bool{}
}

// addKey adds an object. It returns false after the end of the run: no later pass can store the results.
func (u *unwritten) addKey(key types.NamespacedName) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.keys == nil {
		return false
	}
	u.keys[key] = true
	return true
}

// takeRemaining returns the remaining objects, and rejects further ones.
func (u *unwritten) takeRemaining() map[types.NamespacedName]bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	// The lock makes this atomic: an object is either returned here, or rejected by [unwritten.addKey].
	left := u.keys
	u.keys = nil
	return left
}

// keepCounted keeps the object counted in the gate until a later pass has stored its results, and returns true. In a pause
// there is no later pass: then it writes as much as it can, and returns false.
func (c *Controller) keepCounted(ctx context.Context, request source.Request) bool {
	// After the end of the run, the set rejects the object, because no later pass would remove it.
	if !c.isPaused() && c.unwritten.addKey(request.NamespacedName) {
		return true
	}
	c.retryDuringPause(ctx, request)
	return false
}

// writeRemaining stores the remaining results at the end of a run, when no more passes begin. It does not wait; the caller
// waits for the passes.
func (c *Controller) writeRemaining() {
	for key := range c.unwritten.takeRemaining() {
		c.passes.Go(func() {
			// The pass that left the results has already ended, so the count of the object ends here.
			defer c.leaveGate()
			c.retryDuringPause(c.passing, source.Request{NamespacedName: key})
		})
	}
}

// retryDuringPause repeats passes over an object during a pause, until its results are stored or the permission to run ends.
// Results that are not stored by that time make the next operator run the same handlers again.
func (c *Controller) retryDuringPause(ctx context.Context, request source.Request) {
	if c.isPaused() {
		c.objects.ClearThrottle(c.cachedUID(request.NamespacedName)) // a pause is too short for the delays of earlier failures
	}
	// Stop as well if the gate is open: then a normal pass can store the results.
	for c.isPaused() && ctx.Err() == nil {
		result, left, err := c.runRequestSafely(ctx, request)
		if err != nil {
			log := logging.OfObject(c.log, request.NamespacedName, c.cachedUID(request.NamespacedName))
			log.Error(err, "Failed to write in a pause what handlers did to an object; they may be called for it again",
				panics.StackFields(err)...)
		}
		// Stop if everything is stored, or if the pass requests no repetition, as for a blocked object or after a
		// panic.
		if !left || result.RequeueAfter <= 0 {
			return
		}
		// The pass requested a later repetition.
		select {
		case <-ctx.Done():
		case <-time.After(min(result.RequeueAfter, slowestInsistence)):
		}
	}
}

// isPaused reports whether the gate of this turn is closed.
func (c *Controller) isPaused() bool { return c.turn.Gate != nil && !c.turn.Gate.Open() }
