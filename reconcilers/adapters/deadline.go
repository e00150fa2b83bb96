package adapters

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
)

// Deadline cancels the context of the function when the handler's timeout is over. Kopf only looks at it before and
// after a call.
func Deadline(next Reconciler) Reconciler {
	return Func(func(ctx context.Context, a *execution.Attempt) (reconcile.Result, error) {
		timeout := a.Limits.Policy.Timeout
		if timeout == nil {
			return next.Reconcile(ctx, a)
		}
		ctx, cancel := context.WithTimeoutCause(ctx, *timeout-a.Limits.Runtime, execution.ErrTimeout)
		defer cancel()
		return next.Reconcile(ctx, a)
	})
}
