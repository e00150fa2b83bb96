package adapters

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kopf-runtime/kopf-runtime/internal/execution"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

// fieldChangedAdapter selects handlers of a field by the change of the field: whether it changed, and from and to which
// value. It does not affect whether the object can ever match, because a later change may fit.
func fieldChangedAdapter(h *HandlerChain) Adapter {
	field := h.Description
	if field.Field == nil || !field.NeedsChange && field.From == nil && field.To == nil {
		return nil
	}
	return func(next Reconciler) Reconciler {
		return Func(func(ctx context.Context, a *execution.Attempt) (reconcile.Result, error) {
			if !decidesOnCause(a) {
				// The question is whether the handler can ever match: a later change of the field may fit.
				return next.Reconcile(ctx, a)
			}
			var stop execution.Stop
			// The patterns From and To are the user's functions and may panic.
			if _, err := field.CallCriterion("value pattern", func() (bool, error) {
				stop = decideOnField(field, a.Call.Cause.Old, a.Call.Cause.New)
				return true, nil
			}); err != nil {
				return reconcile.Result{}, err
			}
			if stop.Reason != "" {
				return stopAttempt(a, "FieldChanged", stop)
			}
			return next.Reconcile(ctx, a)
		})
	}
}

// decideOnField compares strictly: null and absent values differ here, as in Kopf. Then both values must match their
// patterns. The zero Stop means that the change fits.
func decideOnField(h *handlers.Handler, then, now map[string]any) execution.Stop {
	// The essences have all fields of handlers, also those outside of the spec: see Lens.Extra.
	before, hadBefore := diff.ResolvePath(then, h.Field)
	after, hasAfter := diff.ResolvePath(now, h.Field)
	switch {
	case h.NeedsChange && hadBefore == hasAfter && diff.Equal(before, after):
		return execution.Stop{Reason: execution.Unchanged, Found: after}
	case h.From != nil && !h.From(before, hadBefore):
		return execution.Stop{Reason: execution.OtherChange, Found: before}
	case h.To != nil && !h.To(after, hasAfter):
		return execution.Stop{Reason: execution.OtherChange, Found: after}
	default:
		return execution.Stop{}
	}
}
