package kopf

import (
	"context"
	"fmt"
	"time"

	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/activities"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
)

// OnCleanup registers a handler that is called after all else, when all other handlers have ended. Kopf: on.cleanup.
//
// # Flow
//
// The handlers of the cleanup are called as those of the startup are, whatever the operator ends for, if the startup
// has succeeded; not after a crash, nor if the lease of the leader is lost.
//
// # Errors
//
// A handler that fails for good, or is not finished in time, see [ProcessSettings], makes the program exit with 1. In a
// given manager, which reports no errors of its end, the log is all there is.
func (op *Operator) OnCleanup(
	id string, fn func(ctx context.Context, a *Activity) error, opts ...activityOption,
) {
	op.act("OnCleanup", activities.Cleanup, id, opts, caller(fn == nil, func(
		ctx context.Context, call *handlers.Invocation,
	) (any, error) {
		return nil, fn(ctx, op.activityOf(call))
	}))
}

// defaultCleanup is what Kubernetes gives to a pod for all of its end, by default.
const defaultCleanup = 30 * time.Second

// cleanUp calls the handlers of the cleanup. The operator is exiting: its context may have ended.
func (op *Operator) cleanUp(ctx context.Context) error {
	op.mu.Lock()
	limit := op.settings.values.CleanupTimeout
	op.mu.Unlock()
	ctx = logf.IntoContext(context.WithoutCancel(ctx), op.logger())
	if limit != Never {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, limit, cleanupTimeoutError(limit))
		defer cancel()
	}
	_, err := op.activity(activities.Cleanup).Run(ctx)
	if err != nil {
		return fmt.Errorf("operator %q: %w", op.name, err)
	}
	return nil
}

// cleanupTimeoutError is why functions of the cleanup are cancelled.
type cleanupTimeoutError time.Duration

func (t cleanupTimeoutError) Error() string {
	return fmt.Sprintf("it took longer than %s (CleanupTimeout)", time.Duration(t))
}

// Unwrap tells the engine that the attempt does not count.
func (cleanupTimeoutError) Unwrap() error { return ErrExiting }
