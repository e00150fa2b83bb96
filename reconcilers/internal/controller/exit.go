package controller

import (
	"context"
	"errors"
	"time"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/shards"
)

// maxRangeGrace limits Settings.PauseTimeout for the objects of a range. A replica releases a busy range 15 seconds
// after it has closed its gate: the rest is for handlers that return late, and for their outcomes.
const maxRangeGrace = 10 * time.Second

// beginPasses sets the context of the passes of one run. That context outlives the context of the run, so that running
// handlers can finish. When the operator exits, they have Settings.ExitTimeout. When it is paused, they have
// Settings.PauseTimeout, as long as writing is permitted; an exit during that time switches to ExitTimeout. When
// another controller takes over the objects, or none serves them any more, the context ends at once.
//
// The returned function ends the context. It is called when all passes have returned.
func (c *Controller) beginPasses(ctx context.Context) (end func()) {
	// WithoutCancel keeps the values of the context, such as the logger, but not its end.
	passing, cancel := context.WithCancelCause(shards.WithRange(context.WithoutCancel(ctx), c.scope.Range))
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

// pauseTimeout returns how long running handlers may go on in a pause.
func (c *Controller) pauseTimeout() time.Duration {
	if c.scope.Range.IsWhole() {
		return c.deps.Settings.PauseTimeout
	}
	return min(c.deps.Settings.PauseTimeout, maxRangeGrace)
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
