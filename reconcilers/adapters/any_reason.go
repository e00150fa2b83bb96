package adapters

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/cause"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
)

// anyReason is for handlers of changes that have no adapter for one reason, such as those of a field, and
// sub-handlers: they are for all reasons.
func anyReason(h *Handler) Adapter {
	reason := h.Description.Reason
	switch reason {
	case cause.Create, cause.Update, cause.Delete:
		return nil
	case "":
		if h.Description.Initial {
			return nil
		}
		return deciding(h, "AnyReason", func(*cause.Cause) bool { return true }, otherReason(""))
	default: // one that only informs has no adapter of its own
		return deciding(
			h, "AnyReason", func(c *cause.Cause) bool { return c.Reason == reason }, otherReason(reason),
		)
	}
}

// deciding makes the adapter of a pure decision on the facts of a cause: an attempt that does not fit is stopped. What
// has happened does not matter to the questions whether the handler would ever be called, and whether the object must
// be held for it: so it is for handlers of deletions, unless they are optional.
func deciding(
	h *Handler, name string, fits func(c *cause.Cause) bool, why func(c *cause.Cause) execution.Stop,
) Adapter {
	held := h.Description.Reason == cause.Delete && !h.Description.Optional
	return func(next Reconciler) Reconciler {
		return Func(func(ctx context.Context, a *execution.Attempt) (reconcile.Result, error) {
			switch {
			case a.Asking == execution.Deletion && !held:
				return stopped(a, name, execution.Stop{Why: execution.NotHeld})
			case decidesOnCause(a) && !fits(a.Call.Cause):
				return stopped(a, name, why(a.Call.Cause))
			default:
				return next.Reconcile(ctx, a)
			}
		})
	}
}

// decidesOnCause is false for attempts that do not depend on what has happened: the handler was selected before, or is
// asked whether it would ever be called.
func decidesOnCause(a *execution.Attempt) bool {
	return !a.Selected && a.Asking != execution.Interest && a.Asking != execution.Deletion
}

// stopped ends an attempt.
func stopped(a *execution.Attempt, by string, stop execution.Stop) (reconcile.Result, error) {
	stop.By = by
	a.Stopped = stop
	return reconcile.Result{}, nil
}

// otherReason tells both reasons.
func otherReason(expected cause.Reason) func(c *cause.Cause) execution.Stop {
	stop := execution.Stop{Why: execution.OtherReason, Expected: expected}
	return func(c *cause.Cause) execution.Stop {
		stop := stop
		stop.Found = reasonValue(c.Reason)
		return stop
	}
}

// reasonValue boxes a reason for a Stop. Constants need no allocation, so asking costs no memory.
func reasonValue(r cause.Reason) any {
	switch r {
	case cause.Create:
		return cause.Create
	case cause.Update:
		return cause.Update
	case cause.Delete:
		return cause.Delete
	case cause.Resume:
		return cause.Resume
	case cause.Noop:
		return cause.Noop
	default:
		return r
	}
}
