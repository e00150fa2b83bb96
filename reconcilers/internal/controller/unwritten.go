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

// slowestInsistence is the longest delay between two attempts to write in a pause, which is short.
const slowestInsistence = 5 * time.Second

// unwritten are the objects of which something that handlers did is not written, between the passes over them. They
// count for the gate as if a handler was running, so that in a pause others wait until it is written.
type unwritten struct {
	mu   sync.Mutex
	keys map[types.NamespacedName]bool // nil at the end of a run
}

func (u *unwritten) begin() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.keys = map[types.NamespacedName]bool{}
}

// put is false at the end of the run.
func (u *unwritten) put(key types.NamespacedName) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.keys == nil {
		return false
	}
	u.keys[key] = true
	return true
}

// end gives those that are left.
func (u *unwritten) end() map[types.NamespacedName]bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	left := u.keys
	u.keys = nil
	return left
}

// keep keeps counting an object until what is left of its pass is written. It is false if it is not to be counted any
// more: in a pause, there is no later pass, so all is done here that can be done.
func (c *Controller) keep(ctx context.Context, request source.Request) bool {
	if !c.paused() && c.unwritten.put(request.NamespacedName) {
		return true
	}
	c.insist(ctx, request)
	return false
}

// writeLeft is called at the end of the run, when no more passes begin.
func (c *Controller) writeLeft() {
	for key := range c.unwritten.end() {
		c.passes.Go(func() {
			defer c.leave()
			c.insist(c.passing, source.Request{NamespacedName: key})
		})
	}
}

// insist tries again and again to write what is left of an object, as long as handlers may run in a pause: if it is not
// written by then, another operator may call the same handlers.
func (c *Controller) insist(ctx context.Context, request source.Request) {
	if c.paused() {
		c.objects.Hasten(c.known(request.NamespacedName)) // there is no time for long delays
	}
	for c.paused() && ctx.Err() == nil {
		result, left, err := c.contained(ctx, request)
		if err != nil {
			log := logging.OfObject(c.log, request.NamespacedName, c.known(request.NamespacedName))
			log.Error(err, "Failed to write in a pause what handlers did to an object; they may be called for it again",
				panics.Stack(err)...)
		}
		if !left || result.RequeueAfter <= 0 {
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(min(result.RequeueAfter, slowestInsistence)):
		}
	}
}

// paused tells whether the operator is.
func (c *Controller) paused() bool { return c.turn.Gate != nil && !c.turn.Gate.Open() }
