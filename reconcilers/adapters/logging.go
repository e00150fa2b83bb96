package adapters

import (
	"context"
	"errors"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/logging"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/panics"
)

// Logging adds the handler, the reason and the attempt to the function's logger, and logs what came of the call.
func Logging(next Reconciler) Reconciler {
	return Func(func(ctx context.Context, a *execution.Attempt) (reconcile.Result, error) {
		log, named := logr.Discard(), ctx
		contained(ctx, func() { log = withNames(logf.FromContext(ctx), a) })
		if log.GetSink() != nil {
			named = logf.IntoContext(ctx, posted(log, a))
			log = posted(log, a, "handler", a.Call.Handler.ID)
		}
		result, err := next.Reconcile(named, a)
		contained(ctx, func() { logOutcome(ctx, log, a) })
		return result, err
	})
}

// contained calls the logger of an attempt, which may be that of the project. A panic there neither ends the process
// nor changes the outcome: it is logged, if the logger can do that.
func contained(ctx context.Context, act func()) {
	err := panics.Contain(func() error { act(); return nil })
	if err == nil {
		return
	}
	_ = panics.Contain(func() error {
		logf.FromContext(ctx).Error(err, "Failed to log an attempt of a handler", panics.Stack(err)...)
		return nil
	})
}

// linePoster is a [handlers.Poster] that posts the lines of logs, too.
type linePoster interface {
	// Logger gives a logger of which the lines are posted as well. Their events say told besides: keys and values that
	// the log knows already.
	Logger(log logr.Logger, body map[string]any, told ...any) logr.Logger
}

// posted is a logger of which the lines are Kubernetes events, too, if the operator wants that, and for handlers that
// are not called for each and every event.
func posted(log logr.Logger, a *execution.Attempt, told ...any) logr.Logger {
	poster, lines := a.Call.Events.(linePoster)
	family := a.Call.Handler.Family
	if !lines || family != handlers.Changing && family != handlers.Spawning {
		return log
	}
	return poster.Logger(log, a.Call.Cause.Body(), told...)
}

// logOutcome logs what came of the call.
func logOutcome(ctx context.Context, log logr.Logger, a *execution.Attempt) {
	o := a.Outcome
	if a.Call.Handler.Family == handlers.Admitting {
		logVerdict(log, o)
		return
	}
	log = log.WithValues(panics.Stack(errors.Join(o.Err, o.Ignored))...)
	var pending *execution.PendingError
	switch {
	case o.Blocked:
		log.Error(o.Err, "Cannot call the handler with this object; waiting until the object changes")
	case o.Aborted && a.Call.Handler.Family == handlers.Spawning:
		log.V(1).Info("Handler was stopped", "why", context.Cause(ctx).Error())
	case o.Aborted && a.Call.Handler.Family == handlers.Acting:
		log.Info("Handler was interrupted", "error", o.Err.Error())
	case o.Aborted:
		log.Info("Handler was interrupted; calling it again later", "error", o.Err.Error())
	case errors.As(o.Err, &pending) && !o.Final && !pending.Awaited.Until.IsZero():
		log.Info("Handler waits for an object", "object", pending.Awaited.Child, "until", pending.Awaited.Until)
	case errors.As(o.Err, &pending) && !o.Final:
		log.V(1).Info("Handler waits for its sub-handlers", "after", pending.Delay.String())
	case o.Ignored != nil:
		log.Error(o.Ignored, "Handler failed; its errors are ignored")
	case o.Err == nil && !o.Final:
		log.Info("Handler is not finished yet")
	case o.Err == nil && often(a.Call.Handler):
		log.V(1).Info("Handler succeeded") // there may be any number of events and ticks
	case o.Err == nil:
		log.Info("Handler succeeded")
	case o.Final:
		log.Error(o.Err, "Handler failed permanently")
	case o.Delay != nil:
		log.Error(o.Err, "Handler failed temporarily; retrying", "after", o.Delay.String())
	default:
		log.Error(o.Err, "Handler failed temporarily; retrying at once")
	}
}

// logVerdict logs what a handler says of a request: to deny it is no failure, if it is meant.
func logVerdict(log logr.Logger, o execution.Outcome) {
	switch {
	case o.Err == nil:
		log.V(1).Info("Handler has no objection")
	case o.Denial.Status != nil, o.Denial.Permanent:
		log.Info("Handler denies the request", "why", o.Err.Error())
	default:
		log.Error(o.Err, "Handler failed; the request is denied", panics.Stack(o.Err)...)
	}
}

// often tells whether a handler may be called any number of times with nothing to tell.
func often(h *handlers.Handler) bool {
	if h.Family == handlers.Acting {
		return h.Often
	}
	return h.Family != handlers.Changing
}

// withNames adds the handler, the reason and the attempt, for the function as well.
func withNames(log logr.Logger, a *execution.Attempt) logr.Logger {
	values := append(make([]any, 0, 8), "handler", a.Call.Handler.ID)
	if asked := a.Call.Admission; asked != nil {
		return logging.Formatted(log, append(values, "operation", asked.Operation, "subresource", asked.Subresource)...)
	}
	switch h := a.Call.Handler; h.Family {
	case handlers.Watching:
		return logging.Formatted(log, append(values, "type", a.Call.Cause.Type)...)
	case handlers.Tending:
		child := &unstructured.Unstructured{Object: a.Call.Child}
		values = append(values, "type", a.Call.Cause.Type, "child", child.GetKind()+" "+child.GetName())
	case handlers.Acting:
		values = append(values, "activity", h.Activity)
	case handlers.Changing:
		values = append(values, "reason", a.Call.Cause.Reason)
	}
	return logging.Formatted(log, append(values, "attempt", a.Call.Retry+1)...)
}
