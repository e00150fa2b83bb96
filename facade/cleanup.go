package kopf

import (
	"context"
	"fmt"
	"time"

	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/activities"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
)

// OnCleanup registers a handler that is called when all others have ended; not after a failed startup, a crash or a
// lost lease. A permanent failure, or passing [Settings].CleanupTimeout, results in exit code 1. Kopf: on.cleanup.
func (op *Operator) OnCleanup(
	id string, fn func(ctx context.Context, a *Activity) error, opts ...activityOption,
) {
	op.act("OnCleanup", activities.Cleanup, id, opts, caller(fn == nil, func(
		ctx context.Context, call *handlers.Invocation,
	) (any, error) {
		return nil, fn(ctx, op.activityOf(call))
	}))
}

// defaultCleanup is the default grace period of a pod in Kubernetes.
const defaultCleanup = 30 * time.Second

// cleanUp calls the handlers of the cleanup. The operator is exiting: its context may have ended.
func (op *Operator) cleanUp(ctx context.Context) error {
	op.registry.Lock()
	limit := op.settings.values.CleanupTimeout
	op.registry.Unlock()
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

// cleanupTimeoutError is the cause with which cleanup handlers are cancelled.
type cleanupTimeoutError time.Duration

func (t cleanupTimeoutError) Error() string {
	return fmt.Sprintf("it took longer than %s (CleanupTimeout)", time.Duration(t))
}

// Unwrap returns ErrExiting, so the attempt does not count.
func (cleanupTimeoutError) Unwrap() error { return ErrExiting }
