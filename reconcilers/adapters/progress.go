package adapters

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
)

// progress goes on from the account of the attempts before: a handler that is finished is not called again, one that
// sleeps not yet. The attempt gets their number, and the time since the first one.
func progress(*Handler) Adapter {
	return func(next Reconciler) Reconciler {
		return Func(func(ctx context.Context, a *execution.Attempt) (reconcile.Result, error) {
			if a.Asking != 0 && a.Asking != execution.Due {
				return next.Reconcile(ctx, a)
			}
			now := a.Now()
			if stop := a.Account.Waits(now); stop.Why != "" {
				return stopped(a, "Progress", stop)
			}
			if a.Asking == 0 {
				a.Continue(now)
			}
			return next.Reconcile(ctx, a)
		})
	}
}
