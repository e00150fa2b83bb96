package controller

import (
	"context"
	"errors"
	"time"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
)

// beginPasses makes the context of the passes of a run. When the operator exits, it goes on for Settings.ExitTimeout,
// so that handlers that are about to finish can do so; when it is paused, for Settings.PauseTimeout, as long as it may
// write, and unless it exits meanwhile; when others serve the objects from now on, or nobody, it ends at once.
func (c *Controller) beginPasses(ctx context.Context) (end func()) {
	passing, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	c.passing = passing
	ended := make(chan struct{})
	last := grace{ended: ended, abandoned: c.deps.Abandoned, fruitless: c.deps.permission(c.scope.Namespace).Done()}
	stop := context.AfterFunc(ctx, func() {
		cause, exits := context.Cause(ctx), exiting(ctx)
		if errors.Is(cause, execution.ErrPaused) && last.wait(c.deps.Settings.PauseTimeout, c.deps.Exiting) {
			cause, exits = execution.ErrExiting, true
		}
		if exits {
			last.wait(c.deps.Settings.ExitTimeout, nil)
		}
		cancel(cause)
	})
	return func() {
		stop()
		close(ended)
		cancel(nil)
	}
}

// grace is the time in which what runs may finish: until it has ended, until nobody waits for it any more, or until
// nothing can be written.
type grace struct {
	ended, abandoned, fruitless <-chan struct{}
}

// wait waits for the end of it, or for the timeout. It is true if it was interrupted before that.
func (g grace) wait(timeout time.Duration, interrupted <-chan struct{}) bool {
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case <-interrupted:
		return true
	case <-g.ended:
	case <-g.abandoned:
	case <-g.fruitless:
	case <-timer.C:
	}
	return false
}
