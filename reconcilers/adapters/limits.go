package adapters

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kopf-runtime/kopf-runtime/internal/execution"
)

// limitsAdapter is for handlers with a timeout or a limit of retries.
func limitsAdapter(h *HandlerChain) Adapter {
	if policy := h.Description.Policy; policy.Timeout == nil && policy.Retries == nil {
		return nil
	}
	return Limits
}

// Limits fails the attempt without a call if the handler has used up its time or its retries.
func Limits(next Reconciler) Reconciler {
	return Func(func(ctx context.Context, a *execution.Attempt) (reconcile.Result, error) {
		if err := a.Limits.ExceededError(); err != nil {
			a.Outcome = execution.Outcome{Final: true, Err: err}
			return stopAttempt(a, "Limits", exceededLimit(a.Limits))
		}
		return next.Reconcile(ctx, a)
	})
}

// exceededLimit returns the exceeded limit and the used amount. It checks the time first, as
// [execution.Limits.ExceededError] does.
func exceededLimit(l execution.Limits) execution.Stop {
	if timeout := l.Policy.Timeout; timeout != nil && l.Runtime >= *timeout {
		return execution.Stop{Reason: execution.Exceeded, Expected: *timeout, Found: l.Runtime}
	}
	return execution.Stop{Reason: execution.Exceeded, Expected: *l.Policy.Retries, Found: l.Retries}
}

// deadlineAdapter is for handlers with a timeout.
func deadlineAdapter(h *HandlerChain) Adapter {
	if h.Description.Policy.Timeout == nil {
		return nil
	}
	return Deadline
}

// Deadline cancels the context of the function when the handler's timeout is over. Kopf checks the timeout only before
// and after a call.
func Deadline(next Reconciler) Reconciler {
	return Func(func(ctx context.Context, a *execution.Attempt) (reconcile.Result, error) {
		timeout := a.Limits.Policy.Timeout
		if timeout == nil {
			return next.Reconcile(ctx, a)
		}
		// The timeout counts from the first attempt: only the remaining time is left.
		ctx, cancel := context.WithTimeoutCause(ctx, *timeout-a.Limits.Runtime, execution.ErrTimeout)
		defer cancel()
		return next.Reconcile(ctx, a)
	})
}
