package adapters

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kopf-runtime/kopf-runtime/internal/execution"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

// filtersAdapter stops attempts on objects that do not match the value pattern of the handler's field or one of its
// filters. They may be expensive, so a handler that was already selected for its cause is not checked again.
func filtersAdapter(h *HandlerChain) Adapter {
	description := h.Description
	if description.Field == nil && len(description.Filters) == 0 && description.Matches == nil {
		return nil
	}
	return func(next Reconciler) Reconciler {
		return Func(func(ctx context.Context, a *execution.Attempt) (reconcile.Result, error) {
			// IsDue and the call itself come after the selection.
			if a.Selected {
				return next.Reconcile(ctx, a)
			}
			filter, ok, err := description.MatchesObject(ctx, a.Call.Cause)
			// Matches needs the whole invocation. It counts as the filter after all others.
			if ok && description.Matches != nil {
				filter = len(description.Filters)
				ok, err = description.CallCriterion("filter",
					func() (bool, error) { return description.Matches(ctx, &a.Call) })
			}
			switch {
			case err != nil:
				// The caller decides: see [HandlerChain.SelectFor] for panics.
				return reconcile.Result{}, err
			case ok:
				return next.Reconcile(ctx, a)
			// A negative number is the value pattern of the field, see [handlers.Handler.MatchesObject].
			case filter < 0:
				found, _ := diff.ResolvePath(description.PresentState(a.Call.Cause), description.Field)
				return stopAttempt(a, "Filters", execution.Stop{Reason: execution.OtherValue, Found: found})
			default:
				return stopAttempt(a, "Filters", execution.Stop{Reason: execution.FilteredOut, Filter: filter})
			}
		})
	}
}
