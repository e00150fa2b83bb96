package adapters

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
)

// Limits fails the attempt, with no call, if the handler has used up its time or its retries.
func Limits(next Reconciler) Reconciler {
	return Func(func(ctx context.Context, a *execution.Attempt) (reconcile.Result, error) {
		if err := a.Limits.Exceeded(); err != nil {
			a.Outcome = execution.Outcome{Final: true, Err: err}
			return reconcile.Result{}, nil
		}
		return next.Reconcile(ctx, a)
	})
}
