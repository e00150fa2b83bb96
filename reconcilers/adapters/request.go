package adapters

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kopf-runtime/kopf-runtime/internal/execution"
)

// requestAdapter selects admission handlers for a request, by the id in its URL, its operation and its subresource. It
// comes before the filters, which may be expensive. An attempt without a request depends on the object alone.
func requestAdapter(next Reconciler) Reconciler {
	return Func(func(ctx context.Context, a *execution.Attempt) (reconcile.Result, error) {
		asked := a.Call.Admission
		if a.Selected || asked == nil || a.Call.Handler.AcceptsRequest(asked) {
			return next.Reconcile(ctx, a)
		}
		return stopAttempt(a, "Request", execution.Stop{Reason: execution.OtherRequest})
	})
}
