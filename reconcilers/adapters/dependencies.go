package adapters

import (
	"context"
	"fmt"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kopf-runtime/kopf-runtime/internal/execution"
)

// dependencyError is the permanent error of a sub-handler whose predecessors have failed permanently.
type dependencyError struct{ failedDependencies []string }

// Error names the handlers that have failed.
func (e *dependencyError) Error() string {
	quoted := make([]string, 0, len(e.failedDependencies))
	for _, id := range e.failedDependencies {
		quoted = append(quoted, fmt.Sprintf("%q", id))
	}
	return "not called, because handlers that it depends on failed permanently: " + strings.Join(quoted, ", ")
}

// Permanent is true, because a permanent failure of the others does not change.
func (e *dependencyError) Permanent() bool { return true }

// dependenciesAdapter is for sub-handlers that must run after the success of others. It only handles others that have
// failed. If others are merely unfinished, the Progress adapter stops the attempt by the account, like a pending delay.
func dependenciesAdapter(h *HandlerChain) Adapter {
	if len(h.Description.After) == 0 {
		return nil
	}
	return failDependent
}

// failDependent fails the attempt without a call if a required predecessor has failed.
func failDependent(next Reconciler) Reconciler {
	return Func(func(ctx context.Context, a *execution.Attempt) (reconcile.Result, error) {
		if lost := a.Account.FailedDependencies; len(lost) > 0 {
			a.Outcome = execution.Outcome{Final: true, Err: &dependencyError{lost}}
			return stopAttempt(a, "Dependencies", execution.Stop{Reason: execution.DependencyFailed, Expected: lost})
		}
		return next.Reconcile(ctx, a)
	})
}
