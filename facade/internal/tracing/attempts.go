package tracing

import (
	"cmp"
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

// scope is what all spans are from.
const scope = "github.com/kopf-runtime/kopf-runtime"

// header is that of W3C's Trace Context.
const header = "traceparent"

// Attempts makes the spans of attempts.
type Attempts struct {
	// Provider makes the spans; nil makes none.
	Provider trace.TracerProvider
	// Operator is its name.
	Operator string
	// Apart makes each attempt a trace of its own, with a link to the first one.
	Apart bool
}

// attempt is what the contexts of attempts have: requests are traced with them, and with no others.
type attempt struct{}

// Observer tells of attempts by their spans; it is nil without a provider.
func (t Attempts) Observer() handlers.Observer {
	if t.Provider == nil {
		return nil
	}
	tracer := t.Provider.Tracer(scope)
	return func(ctx context.Context, call *handlers.Invocation) (context.Context, func(string, error)) {
		parent, options := t.place(ctx, call)
		options = append(options, trace.WithAttributes(t.describe(call)...))
		ctx, span := tracer.Start(parent, name(call), options...)
		if call.Handler.Root == "" && call.Trace == "" {
			call.Trace = keep(ctx)
		}
		return context.WithValue(ctx, attempt{}, true), func(outcome string, err error) {
			defer span.End()
			span.SetAttributes(attribute.String("kopf.outcome", outcome))
			if err != nil && !pending(err) {
				span.SetAttributes(attribute.String("error.type", kindOf(err)))
				if outcome != "aborted" {
					span.SetStatus(codes.Error, "")
				}
			}
		}
	}
}

// place says which trace the attempt belongs to. A sub-handler is a part of the attempt that calls it, and a request
// for admission is one of what its server traces, if it does. All others go on with the trace of the attempts before,
// or begin one: what the context of the operator has is about the program.
func (t Attempts) place(ctx context.Context, call *handlers.Invocation) (context.Context, []trace.SpanStartOption) {
	if call.Handler.Root != "" || call.Admission != nil {
		return ctx, nil
	}
	carrier := propagation.MapCarrier{header: string(call.Trace)}
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

// keep is the trace of the context, for the progress of the handler; empty if there is none.
func keep(ctx context.Context) progress.Trace {
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, carrier)
	return progress.Trace(carrier[header])
}

// describe are the attributes of an attempt: none has anything that is in an object, but for its names.
func (t Attempts) describe(call *handlers.Invocation) []attribute.KeyValue {
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
	add("kopf.reason", reason(call))
	object := unstructured.Unstructured{}
	if call.Cause != nil {
		object.Object = call.Cause.Body()
	}
	namespace, own := object.GetNamespace(), object.GetName()
	if asked := call.Admission; asked != nil {
		namespace, own = asked.Namespace, asked.Name
	}
	add("kopf.namespace", namespace)
	add("kopf.name", own)
	add("kopf.uid", string(object.GetUID()))
	return all
}

// name is that of the span, which has the ids of no sub-handlers, as there may be any number of them.
func name(call *handlers.Invocation) string {
	id := call.Handler.Label()
	if kind := call.Kind(); kind != "" {
		return kind + " " + id
	}
	if call.Handler.Activity != "" {
		return call.Handler.Activity + " " + id
	}
	return id
}

// reason is what the handler is called for; empty for daemons and timers.
func reason(call *handlers.Invocation) string {
	switch {
	case call.Admission != nil:
		return call.Admission.Operation
	case call.Cause == nil:
		return call.Handler.Activity
	}
	return cmp.Or(string(call.Cause.Reason), call.Cause.Type, call.Handler.Activity)
}
