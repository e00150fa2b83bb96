package adapters

import (
	"context"
	"runtime/debug"

	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/panics"
)

// Recovery makes a panic an error of the attempt, so that it is counted, delayed and limited like any other.
func Recovery(next Reconciler) Reconciler {
	return Func(func(ctx context.Context, a *execution.Attempt) (result reconcile.Result, err error) {
		defer func() {
			if value := recover(); value != nil {
				err = &panics.Error{Value: value, Stack: debug.Stack()}
			}
		}()
		return next.Reconcile(ctx, a)
	})
}

// contained logs or measures an attempt. A panic there neither ends the process nor changes the outcome: it is logged,
// if the logger can do that.
func contained(ctx context.Context, act func()) {
	err := panics.Contain(func() error { act(); return nil })
	if err == nil {
		return
	}
	_ = panics.Contain(func() error {
		logf.FromContext(ctx).Error(err, "An attempt could not be logged or measured", panics.Stack(err)...)
		return nil
	})
}
