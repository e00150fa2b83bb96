package adapters

import (
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/metrics"
)

// measured is for operators that measure anything.
func measured(h *Handler) Adapter {
	if h.metrics == nil {
		return nil
	}
	return Measuring(h.metrics)
}

// Measuring measures the attempts.
func Measuring(by *metrics.Operator) Adapter {
	return func(next Reconciler) Reconciler {
		return Func(func(ctx context.Context, a *execution.Attempt) (reconcile.Result, error) {
			started := a.Now()
			result, err := next.Reconcile(ctx, a)
			contained(ctx, func() { measure(by, a, a.Now().Sub(started)) })
			return result, err
		})
	}
}

func measure(by *metrics.Operator, a *execution.Attempt, took time.Duration) {
	kind, _ := a.Call.Cause.Body["kind"].(string)
	if a.Call.Admission != nil { // whoever sends a request may name any kind in it
		kind = a.Call.Resource.Kind
	}
	by.Attempted(kind, handlerLabel(a.Call.Handler), string(a.Call.Cause.Reason), outcomeLabel(a.Outcome), took)
}

// handlerLabel has as many values as there are registrations, twice: how many sub-handlers there are, and under which
// ids, may be up to the object, and a series stays until the end of the process.
func handlerLabel(h *handlers.Handler) string {
	if h.Root != "" {
		return handlers.SubID(h.Root, "*")
	}
	return h.ID
}

func outcomeLabel(o execution.Outcome) string {
	switch {
	case o.Aborted:
		return "aborted"
	case o.Ignored != nil:
		return "ignored"
	case o.Final && o.Err == nil:
		return "success"
	case o.Final:
		return "failure"
	default:
		return "retry"
	}
}
