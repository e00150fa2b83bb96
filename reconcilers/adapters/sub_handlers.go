package adapters

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
)

// SubHandlers runs what the function has declared, once it has returned without an error.
func SubHandlers(next Reconciler) Reconciler {
	return Func(func(ctx context.Context, a *execution.Attempt) (reconcile.Result, error) {
		result, err := next.Reconcile(ctx, a)
		if err == nil && a.Call.Subs != nil {
			err = a.Call.Subs.Run(ctx)
		}
		return result, err
	})
}
