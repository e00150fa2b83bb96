package adapters

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
)

// request lets admitting handlers run that the request is for: by the id in its address, by its operation, and by its
// subresource. Filters, which may be expensive, are asked of those alone. An attempt without a request is about the
// object alone.
func request(next Reconciler) Reconciler {
	return Func(func(ctx context.Context, a *execution.Attempt) (reconcile.Result, error) {
		asked := a.Call.Admission
		if a.Selected || asked == nil || a.Call.Handler.Answers(asked) {
			return next.Reconcile(ctx, a)
		}
		return stopped(a, "Request", execution.Stop{Why: execution.OtherRequest})
	})
}
