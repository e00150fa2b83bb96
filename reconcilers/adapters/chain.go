package adapters

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
)

// Reconciler makes one attempt. What came of it is in the attempt's outcome.
type Reconciler = reconcile.TypedReconciler[*execution.Attempt]

// Func is a function as a Reconciler.
type Func = reconcile.TypedFunc[*execution.Attempt]

// Adapter adds one concern to a Reconciler.
type Adapter func(next Reconciler) Reconciler

// Chain wraps the reconciler in the adapters, the first of them outermost.
func Chain(inner Reconciler, adapters ...Adapter) Reconciler {
	for i := len(adapters) - 1; i >= 0; i-- {
		inner = adapters[i](inner)
	}
	return inner
}

// Standard is the chain that every handler is called through.
func Standard(metrics *Metrics) Reconciler {
	return Chain(Func(call), Logging, metrics.Adapter, Limits, Deadline, ErrorClasses, SubHandlers, Recovery)
}

// call is the innermost step: the user's function itself.
func call(ctx context.Context, a *execution.Attempt) (reconcile.Result, error) {
	return reconcile.Result{}, a.Call.Handler.Call(ctx, &a.Call)
}
