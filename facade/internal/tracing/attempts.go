package tracing

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kopf-runtime/kopf-runtime/internal/execution"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/internal/panics"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

// instrumentationScope is the name of the instrumentation library in all spans.
const instrumentationScope = "github.com/kopf-runtime/kopf-runtime"

// traceHeader is the header of W3C Trace Context. The other header, tracestate, is not stored.
const traceHeader = "traceparent"

// AttemptTracer creates the spans of attempts.
type AttemptTracer struct {
	// Provider creates the spans. If it is nil, nothing is traced.
	Provider trace.TracerProvider
	// Operator is the name of the operator.
	Operator string
	// Apart makes each attempt a separate trace, with a link to the trace of the first attempt. Retries can be hours
	// apart.
	Apart bool
}

// attempt is the key of a context value that marks the context of an attempt. Only requests with such a context are
// traced.
type attempt struct{}

// NewObserver returns a function that creates a span for each attempt. It returns nil without a provider.
func (t AttemptTracer) NewObserver() handlers.AttemptObserver {
	if t.Provider == nil {
		return nil
	}
	tracer := t.Provider.Tracer(instrumentationScope)
	return func(ctx context.Context, call *handlers.Invocation) (context.Context, func(string, error)) {
		parent, options := t.parentContext(ctx, call)
		options = append(options, trace.WithAttributes(t.attemptAttributes(call)...))
		ctx, span := tracer.Start(parent, spanName(call), options...)
		// Only the first attempt sets the trace, and sub-handlers belong to the trace of their parent.
		if call.Handler.Root == "" && call.Trace == "" {
			call.Trace = traceForRecord(ctx)
		}
		return context.WithValue(ctx, attempt{}, true), func(outcome string, err error) {
			defer span.End()
			span.SetAttributes(attribute.String("kopf.outcome", outcome))
			// An attempt that was aborted, for example because the operator exits, does not count, so the span does not
			// have the status of an error.
			if err != nil && !isPendingError(err) {
				span.SetAttributes(attribute.String("error.type", errorTypeOf(err)))
				if outcome != "aborted" {
					span.SetStatus(codes.Error, "")
				}
			}
		}
	}
}

// parentContext returns the context from which the span of an attempt starts. A sub-handler belongs to the attempt that
// calls it. An admission request belongs to the trace of the webhook server, if that traces requests. All other
// attempts continue the trace of the former attempts, or start a new one: a span in the operator's own context concerns
// the whole program.
func (t AttemptTracer) parentContext(
	ctx context.Context, call *handlers.Invocation,
) (context.Context, []trace.SpanStartOption) {
	if call.Handler.Root != "" || call.Admission != nil {
		return ctx, nil
	}
	// The records store only the traceparent, so the former span is a remote one.
	carrier := propagation.MapCarrier{traceHeader: string(call.Trace)}
	before := trace.SpanContextFromContext(propagation.TraceContext{}.Extract(context.Background(), carrier))
	switch {
	case !before.IsValid():
		return ctx, []trace.SpanStartOption{trace.WithNewRoot()}
	case t.Apart:
		return ctx, []trace.SpanStartOption{
			trace.WithNewRoot(), trace.WithLinks(trace.Link{SpanContext: before}),
		}
	default:
		return trace.ContextWithRemoteSpanContext(ctx, before), nil
	}
}

// traceForRecord returns the trace of the context, in the form that records store. It is empty without a trace.
func traceForRecord(ctx context.Context) progress.Trace {
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, carrier)
	return progress.Trace(carrier[traceHeader])
}

// attemptAttributes returns the attributes of an attempt. They contain no content of the object except for its name,
// namespace and UID.
func (t AttemptTracer) attemptAttributes(call *handlers.Invocation) []attribute.KeyValue {
	all := []attribute.KeyValue{
		attribute.String("kopf.operator", t.Operator), attribute.String("kopf.handler", call.Handler.ID),
		attribute.Int("kopf.retry", call.Retry),
	}
	add := func(key, value string) {
		if value != "" {
			all = append(all, attribute.String(key, value))
		}
	}
	add("kopf.kind", call.Kind())
	add("kopf.reason", attemptReason(call))
	// Activities do not have an object.
	object := unstructured.Unstructured{}
	if call.Cause != nil {
		object.Object = call.Cause.Body()
	}
	namespace, own := object.GetNamespace(), object.GetName()
	// The object of a request may lack them, so the request has priority.
	if asked := call.Admission; asked != nil {
		namespace, own = asked.Namespace, asked.Name
	}
	add("kopf.namespace", namespace)
	add("kopf.name", own)
	add("kopf.uid", string(object.GetUID()))
	return all
}

// spanName returns the name of the span. It does not contain the ids of sub-handlers: their number is not limited, but
// names of spans should have a low cardinality.
func spanName(call *handlers.Invocation) string {
	id := call.Handler.MetricsLabel()
	if kind := call.Kind(); kind != "" {
		return kind + " " + id
	}
	if call.Handler.Activity != "" {
		return call.Handler.Activity + " " + id
	}
	return id
}

// attemptReason returns why the handler is called. It is empty for daemons and timers.
func attemptReason(call *handlers.Invocation) string {
	switch {
	case call.Admission != nil:
		return call.Admission.Operation
	case call.Cause == nil:
		return call.Handler.Activity
	}
	return cmp.Or(string(call.Cause.Reason), call.Cause.EventType, call.Handler.Activity)
}

// CheckSettings returns an error for invalid settings.
func CheckSettings(given trace.TracerProvider, apart bool) error {
	provider := reflect.ValueOf(given)
	switch {
	case given == nil && apart:
		return errors.New("Tracing.Apart: nothing is traced without a Tracing.Provider: give one, or leave it out")
	case provider.Kind() == reflect.Pointer && provider.IsNil():
		return fmt.Errorf("Tracing.Provider: it is a nil %T: leave it out to trace nothing", given)
	}
	return nil
}

// isPendingError reports whether the error only means that the handler waits, for its sub-handlers or for a child.
func isPendingError(err error) bool {
	var waits *execution.PendingError
	return errors.As(err, &waits)
}

// errorTypeOf returns the Go type of the innermost error, or "panic". A span does not contain the text of an error,
// because the text may quote secrets that the handler has read.
func errorTypeOf(err error) string {
	var panicked *panics.PanicError
	if errors.As(err, &panicked) {
		return "panic"
	}
	return panics.InnermostType(err)
}
