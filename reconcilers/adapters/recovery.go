package adapters

import (
	"context"
	"errors"
	"runtime/debug"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
)

var errGoexit = errors.New("the function ended its goroutine by runtime.Goexit")

// Recovery makes a panic an error of the attempt, so that it is counted, delayed and limited like any other.
func Recovery(next Reconciler) Reconciler {
	return Func(func(ctx context.Context, a *execution.Attempt) (result reconcile.Result, err error) {
		returned := false
		defer func() {
			if value := recover(); value != nil {
				err = &execution.PanicError{Value: value, Stack: debug.Stack()}
			} else if !returned {
				// It cannot be stopped, so no adapter around this one will judge. With no outcome, the function would be
				// called again at once, for ever.
				a.Outcome = a.Limits.Judge(errGoexit)
			}
		}()
		result, err = next.Reconcile(ctx, a)
		returned = true
		return result, err
	})
}
