package adapters

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
)

// observation is for handlers whose attempts somebody wants to know of.
func observation(h *Handler) Adapter {
	observe := h.Description.Observe
	if observe == nil {
		return nil
	}
	return func(next Reconciler) Reconciler {
		return Func(func(ctx context.Context, a *execution.Attempt) (reconcile.Result, error) {
			observed, ended := observe(ctx, &a.Call)
			returned := false
			defer func() {
				if !returned {
					a.Outcome = a.Limits.Judge(errGoexit) // as the end of the attempt will
				}
				told := outcomeLabel(a)
				ended(told, a.Outcome.Err)
				a.OnDecided(func() {
					if decided := outcomeLabel(a); decided != told {
						ended(decided, a.Outcome.Err)
					}
				})
			}()
			result, err := next.Reconcile(observed, a)
			returned = true
			return result, err
		})
	}
}
