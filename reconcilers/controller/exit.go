package controller

import (
	"context"
	"errors"
	"time"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
)

// beginPasses makes the context of the passes of a run. When the operator exits, it goes on for Settings.ExitTimeout,
// so that handlers that are about to finish can do so; when it is paused, for Settings.PauseTimeout, as long as it may
// write; when others serve the objects from now on, or nobody, it ends at once.
func (c *Controller) beginPasses(ctx context.Context) (end func()) {
	passing, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	c.passing = passing
	ended, permission := make(chan struct{}), c.deps.permission()
	stop := context.AfterFunc(ctx, func() {
		switch {
		case exiting(ctx):
			wait(ended, c.deps.Abandoned, permission.Done(), c.deps.Settings.ExitTimeout)
		case errors.Is(context.Cause(ctx), execution.ErrPaused):
			wait(ended, c.deps.Abandoned, permission.Done(), c.deps.Settings.PauseTimeout)
		}
		cancel(context.Cause(ctx))
	})
	return func() {
		stop()
		close(ended)
		cancel(nil)
	}
}

// wait waits for the end, for the timeout, or until nobody waits any more, or nothing can be written.
func wait(ended, abandoned, fruitless <-chan struct{}, timeout time.Duration) {
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case <-ended:
	case <-abandoned:
	case <-fruitless:
	case <-timer.C:
	}
}
