package adapters

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

// fieldChanged lets handlers of a field run if that has changed from and to what it must. Whether the object is of
// interest at all does not depend on that.
func fieldChanged(h *Handler) Adapter {
	field := h.Description
	if field.Field == nil || !field.NeedsChange && field.From == nil && field.To == nil {
		return nil
	}
	return func(next Reconciler) Reconciler {
		return Func(func(ctx context.Context, a *execution.Attempt) (reconcile.Result, error) {
			if !decidesOnCause(a) {
				return next.Reconcile(ctx, a)
			}
			var stop execution.Stop
			if _, err := field.Ask("value pattern", func() (bool, error) {
				stop = decideOnField(field, a.Call.Cause.Old, a.Call.Cause.New)
				return true, nil
			}); err != nil {
				return reconcile.Result{}, err
			}
			if stop.Why != "" {
				return stopped(a, "FieldChanged", stop)
			}
			return next.Reconcile(ctx, a)
		})
	}
}

// decideOnField compares strictly: a null and an absent value differ here, as they do in Kopf. Then the two sides must
// be as wanted.
func decideOnField(h *handlers.Handler, then, now map[string]any) execution.Stop {
	before, hadBefore := diff.Resolve(then, h.Field)
	after, hasAfter := diff.Resolve(now, h.Field)
	switch {
	case h.NeedsChange && hadBefore == hasAfter && diff.Equal(before, after):
		return execution.Stop{Why: execution.Unchanged, Found: after}
	case h.From != nil && !h.From(before, hadBefore):
		return execution.Stop{Why: execution.OtherChange, Found: before}
	case h.To != nil && !h.To(after, hasAfter):
		return execution.Stop{Why: execution.OtherChange, Found: after}
	default:
		return execution.Stop{}
	}
}
