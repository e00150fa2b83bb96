package adapters

import (
	"context"
	"errors"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/panics"
)

// ErrorClasses turns what the function returned into an outcome, and so ends the way of errors.
func ErrorClasses(next Reconciler) Reconciler {
	return Func(func(ctx context.Context, a *execution.Attempt) (reconcile.Result, error) {
		started := a.Now()
		result, err := next.Reconcile(ctx, a)
		a.Limits.Runtime += a.Now().Sub(started)
		a.Outcome = execution.Contain(err, func(err error) execution.Outcome { return classify(ctx, a, err) })
		return result, nil
	})
}

// plainErrors is ErrorClasses for functions that are never cancelled and have no sub-handlers.
func plainErrors(next Reconciler) Reconciler {
	return Func(func(ctx context.Context, a *execution.Attempt) (reconcile.Result, error) {
		result, err := next.Reconcile(ctx, a)
		a.Outcome = execution.Contain(err, a.Limits.Judge)
		return result, nil
	})
}

// verdict is ErrorClasses for functions that are called once: any error denies the request.
func verdict(next Reconciler) Reconciler {
	return Func(func(ctx context.Context, a *execution.Attempt) (reconcile.Result, error) {
		result, err := next.Reconcile(ctx, a)
		a.Outcome = execution.Contain(err, execution.Verdict)
		return result, nil
	})
}

func classify(ctx context.Context, a *execution.Attempt, err error) execution.Outcome {
	var pending *execution.PendingError
	switch cause := context.Cause(ctx); {
	case err == nil:
		return a.Limits.Judge(nil)
	case errors.Is(cause, execution.ErrExiting), errors.Is(cause, execution.ErrPaused),
		a.Call.Handler.Family == handlers.Spawning && mustEnd(cause):
		return execution.Outcome{Aborted: true, Err: err}
	case errors.As(err, &pending):
		return a.Limits.Await(pending)
	case errors.Is(cause, execution.ErrTimeout):
		return a.Limits.Judge(a.Limits.Interrupted(err))
	case execution.Undecodable(err) && !a.Call.Cause.Deleting && a.Call.Handler.Family != handlers.Acting:
		return execution.Outcome{Aborted: true, Blocked: true, Err: err}
	default:
		return a.Limits.Judge(err)
	}
}

// mustEnd tells whether a function in the background was cancelled because it has to end.
func mustEnd(cause error) bool {
	return errors.Is(cause, execution.ErrUnmatched) || errors.Is(cause, execution.ErrDeleted)
}

// Running gives the context of a function that is called in a pass: with the values of the pass, and until cancel is
// called, or that of the pass ends. Then its cause says why functions must end.
func Running(pass context.Context) (running context.Context, cancel context.CancelCauseFunc) {
	running, end := context.WithCancelCause(context.WithoutCancel(pass))
	forget := context.AfterFunc(pass, func() { end(ending(pass)) })
	return running, func(cause error) {
		forget()
		end(cause)
	}
}

// ending is the cause for which functions must end when the context of their pass has ended: the operator is paused, or
// it exits. It is an exit for them as well if others go on with their objects.
func ending(ctx context.Context) error {
	if errors.Is(context.Cause(ctx), execution.ErrPaused) {
		return execution.ErrPaused
	}
	return execution.ErrExiting
}

// Recovery makes a panic an error of the attempt, so that it is counted, delayed and limited like any other.
func Recovery(next Reconciler) Reconciler {
	return Func(func(ctx context.Context, a *execution.Attempt) (result reconcile.Result, err error) {
		err = panics.Contain(func() (err error) { result, err = next.Reconcile(ctx, a); return err })
		return result, err
	})
}

// SubHandlers runs what the function has declared, once it has returned without an error.
func SubHandlers(next Reconciler) Reconciler {
	return Func(func(ctx context.Context, a *execution.Attempt) (reconcile.Result, error) {
		result, err := next.Reconcile(ctx, a)
		if err == nil && a.Call.Subs != nil {
			err = a.Call.Subs.Run(ctx, nil)
		}
		return result, err
	})
}
