package adapters

import (
	"context"
	"errors"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kopf-runtime/kopf-runtime/internal/execution"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/internal/panics"
)

// ErrorClasses turns the error of the function into the outcome of the attempt. No outer adapter gets the error itself.
func ErrorClasses(next Reconciler) Reconciler {
	return Func(func(ctx context.Context, a *execution.Attempt) (reconcile.Result, error) {
		started := a.Now()
		result, err := next.Reconcile(ctx, a)
		// Limits of retries and timeouts include the time of this call.
		a.Limits.Runtime += a.Now().Sub(started)
		a.Outcome = execution.ContainPanic(err, func(err error) execution.Outcome { return classifyError(ctx, a, err) })
		return result, nil
	})
}

// judgedBy is ErrorClasses for functions that are never cancelled by the engine and do not have sub-handlers.
func judgedBy(judge func(l execution.Limits, err error) execution.Outcome) Adapter {
	return func(next Reconciler) Reconciler {
		return Func(func(ctx context.Context, a *execution.Attempt) (reconcile.Result, error) {
			result, err := next.Reconcile(ctx, a)
			a.Outcome = execution.ContainPanic(err, func(err error) execution.Outcome { return judge(a.Limits, err) })
			return result, nil
		})
	}
}

// anyErrorDenies judges admission handlers, which are called once for a request.
func anyErrorDenies(_ execution.Limits, err error) execution.Outcome {
	return execution.AdmissionOutcome(err)
}

// classifyError turns the error of the function into an outcome. The cause of the context comes first: an error after a
// cancellation is usually a consequence of it.
func classifyError(ctx context.Context, a *execution.Attempt, err error) execution.Outcome {
	var pending *execution.PendingError
	switch cause := context.Cause(ctx); {
	// A success counts, even if the context has ended meanwhile.
	case err == nil:
		return a.Limits.OutcomeOf(nil)
	case errors.Is(cause, execution.ErrExiting), errors.Is(cause, execution.ErrPaused),
		a.Call.Handler.Family == handlers.Background && mustEnd(cause):
		// The operator stops, or the object does not need the function any more. The attempt does not count.
		return execution.Outcome{Aborted: true, Err: err}
	case errors.As(err, &pending):
		// Waiting for sub-handlers or a child is not a failure.
		return a.Limits.PendingOutcome(pending)
	case errors.Is(cause, execution.ErrTimeout):
		// The error is a consequence of the handler's own timeout.
		return a.Limits.OutcomeOf(a.Limits.InterruptedError(err))
	case execution.IsUndecodable(err) && !a.Call.Cause.Deleting && a.Call.Handler.Family != handlers.Activity:
		// A retry is useless until the object changes. That must not block a deletion, and activities have no object.
		return execution.Outcome{Aborted: true, Blocked: true, Err: err}
	default:
		return a.Limits.OutcomeOf(err)
	}
}

// mustEnd reports whether a background function was cancelled because its object no longer needs it.
func mustEnd(cause error) bool {
	return errors.Is(cause, execution.ErrUnmatched) || errors.Is(cause, execution.ErrDeleted)
}

// FunctionContext returns the context of a function that is called in a pass. It has the values of the pass. It ends
// when cancel is called or the pass ends, always with a cause that says why the function must end.
func FunctionContext(pass context.Context) (running context.Context, cancel context.CancelCauseFunc) {
	// The context of the pass may end without such a cause, so its end is translated, not inherited.
	running, end := context.WithCancelCause(context.WithoutCancel(pass))
	forget := context.AfterFunc(pass, func() { end(endCause(pass)) })
	return running, func(cause error) {
		forget()
		end(cause)
	}
}

// endCause returns the cause for functions when the context of their pass has ended: the operator is paused, or it
// exits. Every other end, such as a restart of the controller, counts as an exit: the attempt is aborted and does not
// count.
func endCause(ctx context.Context) error {
	if errors.Is(context.Cause(ctx), execution.ErrPaused) {
		return execution.ErrPaused
	}
	return execution.ErrExiting
}

// Recovery turns a panic into an error of the attempt, which is counted, delayed and limited like any other.
func Recovery(next Reconciler) Reconciler {
	return Func(func(ctx context.Context, a *execution.Attempt) (result reconcile.Result, err error) {
		// The stack of the panic is kept in the error, for the log.
		err = panics.Contain(func() (err error) { result, err = next.Reconcile(ctx, a); return err })
		return result, err
	})
}

// SubHandlers runs the declared sub-handlers when the function has returned without an error.
func SubHandlers(next Reconciler) Reconciler {
	return Func(func(ctx context.Context, a *execution.Attempt) (reconcile.Result, error) {
		result, err := next.Reconcile(ctx, a)
		if err == nil && a.Call.Subs != nil {
			err = a.Call.Subs.Run(ctx, nil)
		}
		return result, err
	})
}
