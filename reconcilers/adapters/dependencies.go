package adapters

import (
	"context"
	"fmt"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
)

// dependencyError is what a sub-handler fails with for good that comes after others, which have failed for good.
type dependencyError struct{ lost []string }

// Error names those that have failed.
func (e *dependencyError) Error() string {
	quoted := make([]string, 0, len(e.lost))
	for _, id := range e.lost {
		quoted = append(quoted, fmt.Sprintf("%q", id))
	}
	return "not called, because handlers that it depends on failed permanently: " + strings.Join(quoted, ", ")
}

// Permanent is true: those have failed for good.
func (e *dependencyError) Permanent() bool { return true }

// dependencies is for sub-handlers that come after the success of others. It is only about those that have failed: who
// comes after others that are not finished waits by its account, as one that sleeps does.
func dependencies(h *Handler) Adapter {
	if len(h.Description.After) == 0 {
		return nil
	}
	return failDependent
}

// failDependent fails the attempt, with no call, if others have failed that must have succeeded before.
func failDependent(next Reconciler) Reconciler {
	return Func(func(ctx context.Context, a *execution.Attempt) (reconcile.Result, error) {
		if lost := a.Account.Lost; len(lost) > 0 {
			a.Outcome = execution.Outcome{Final: true, Err: &dependencyError{lost}}
			return stopped(a, "Dependencies", execution.Stop{Why: execution.Missed, Expected: lost})
		}
		return next.Reconcile(ctx, a)
	})
}
