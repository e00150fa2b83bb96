package adapters

import (
	"context"
	"errors"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kopf-runtime/kopf-runtime/internal/execution"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/internal/logging"
	"github.com/kopf-runtime/kopf-runtime/internal/panics"
)

// Logging adds the handler, the reason and the attempt to the function's logger, and logs the outcome of the call.
func Logging(next Reconciler) Reconciler {
	return Func(func(ctx context.Context, a *execution.Attempt) (reconcile.Result, error) {
		log, named := logr.Discard(), ctx
		containPanics(ctx, func() { log = withNames(logf.FromContext(ctx), a) })
		// Without a sink, all loggers discard their lines: skip the work.
		if log.GetSink() != nil {
			// The function's logger has the names already. For events of outcome lines, the handler is added.
			named = logf.IntoContext(ctx, postingLogger(log, a))
			log = postingLogger(log, a, "handler", a.Call.Handler.ID)
		}
		result, err := next.Reconcile(named, a)
		containPanics(ctx, func() { logOutcome(ctx, log, a) })
		return result, err
	})
}

// containPanics calls the logger of an attempt, which may be the project's own code. A panic in it does not end the
// process or change the outcome. It is logged, if the logger still works.
func containPanics(ctx context.Context, act func()) {
	// The logger may be the one that panics, so the second attempt is contained as well.
	err := panics.Contain(func() error { act(); return nil })
	if err == nil {
		return
	}
	_ = panics.Contain(func() error {
		logf.FromContext(ctx).Error(err, "Failed to log an attempt of a handler", panics.StackFields(err)...)
		return nil
	})
}

// linePoster is a [handlers.EventPoster] that can also post log lines as events.
type linePoster interface {
	// Logger returns a logger that posts its lines as events, too. The additional keys and values appear in the events
	// only, because the log has them already.
	Logger(log logr.Logger, body map[string]any, told ...any) logr.Logger
}

// postingLogger returns a logger that also posts its lines as Kubernetes events, if the operator has enabled that.
// Event handlers and other frequently called handlers do not post their lines, as in Kopf.
func postingLogger(log logr.Logger, a *execution.Attempt, told ...any) logr.Logger {
	poster, lines := a.Call.Events.(linePoster)
	family := a.Call.Handler.Family
	if !lines || family != handlers.Changing && family != handlers.Background {
		return log
	}
	return poster.Logger(log, a.Call.Cause.Body(), told...)
}

// logOutcome logs the outcome of the call. The level depends on how much attention it needs.
func logOutcome(ctx context.Context, log logr.Logger, a *execution.Attempt) {
	o := a.Outcome
	if a.Call.Handler.Family == handlers.Admitting {
		logVerdict(log, o)
		return
	}
	// Log the stack of a panic in all cases below.
	log = log.WithValues(panics.StackFields(errors.Join(o.Err, o.Ignored))...)
	var pending *execution.PendingError
	switch {
	case o.Blocked:
		log.Error(o.Err, "Cannot call the handler with this object; waiting until the object changes")
	case o.Aborted && a.Call.Handler.Family == handlers.Background:
		// Stopping is the normal end of a daemon.
		log.V(1).Info("Handler was stopped", "why", context.Cause(ctx).Error())
	case o.Aborted && a.Call.Handler.Family == handlers.Activity:
		log.Info("Handler was interrupted", "error", o.Err.Error())
	case o.Aborted:
		// The operator exits or is paused. The attempt does not count.
		log.Info("Handler was interrupted; calling it again later", "error", o.Err.Error())
	case errors.As(o.Err, &pending) && !o.Final && !pending.Wait.Until.IsZero():
		log.Info("Handler waits for an object", "object", pending.Wait.Child, "until", pending.Wait.Until)
	case errors.As(o.Err, &pending) && !o.Final:
		log.V(1).Info("Handler waits for its sub-handlers", "after", pending.Delay.String())
	case o.Ignored != nil:
		log.Error(o.Ignored, "Handler failed; its errors are ignored")
	case o.Err == nil && !o.Final:
		log.Info("Handler is not finished yet")
	case o.Err == nil && isCalledOften(a.Call.Handler):
		log.V(1).Info("Handler succeeded") // may happen for every event or tick: too many lines for the normal level
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

// logVerdict logs the answer of an admission handler. An intended denial is not an error.
func logVerdict(log logr.Logger, o execution.Outcome) {
	switch {
	case o.Err == nil:
		log.V(1).Info("Handler has no objection")
	// The handler has denied the request on purpose.
	case o.Denial.Status != nil, o.Denial.Permanent:
		log.Info("Handler denies the request", "why", o.Err.Error())
	default:
		log.Error(o.Err, "Handler failed; the request is denied", panics.StackFields(o.Err)...)
	}
}

// isCalledOften reports whether the handler is called so often that its successes are only logged at the debug level.
func isCalledOften(h *handlers.Handler) bool {
	if h.Family == handlers.Activity {
		return h.IsFrequent
	}
	return h.Family != handlers.Changing
}

// withNames adds the handler, the reason and the attempt to a logger. The function's own lines have them, too.
func withNames(log logr.Logger, a *execution.Attempt) logr.Logger {
	values := append(make([]any, 0, 8), "handler", a.Call.Handler.ID)
	if asked := a.Call.Admission; asked != nil {
		return logging.WithFormattedValues(log,
			append(values, "operation", asked.Operation, "subresource", asked.Subresource)...)
	}
	// Event handlers are called once, so they do not have an attempt number.
	switch h := a.Call.Handler; h.Family {
	case handlers.Watching:
		return logging.WithFormattedValues(log, append(values, "type", a.Call.Cause.EventType)...)
	case handlers.Child:
		child := &unstructured.Unstructured{Object: a.Call.Child}
		values = append(values, "type", a.Call.Cause.EventType, "child", child.GetKind()+" "+child.GetName())
	case handlers.Activity:
		values = append(values, "activity", h.Activity)
	case handlers.Changing:
		values = append(values, "reason", a.Call.Cause.Reason)
	}
	return logging.WithFormattedValues(log, append(values, "attempt", a.Call.Retry+1)...)
}
