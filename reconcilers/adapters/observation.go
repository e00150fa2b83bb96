package adapters

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kopf-runtime/kopf-runtime/internal/execution"
)

// observationAdapter is for handlers with an observer, which sees each attempt before and after the call, such as for
// traces.
func observationAdapter(h *HandlerChain) Adapter {
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
					a.Outcome = a.Limits.OutcomeOf(errGoexit) // as Start does later
				}
				told := outcomeLabel(a)
				ended(told, a.Outcome.Err)
				// A write may still turn a success into a failure. Then the observer is called again with the final
				// outcome.
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
