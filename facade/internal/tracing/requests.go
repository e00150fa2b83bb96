package tracing

import (
	"context"
	"net/http"
	"strconv"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/metrics"
)

// Requests gives a transport that makes a span of each request that an attempt sends: one with its context. Others pass
// through as they are. A span ends when the head of the answer is there. The server is told of it by the header
// traceparent.
func Requests(provider trace.TracerProvider, next http.RoundTripper) http.RoundTripper {
	if provider == nil {
		return next
	}
	return transport{provider.Tracer(scope), next}
}

// transport is below that of a client.
type transport struct {
	tracer trace.Tracer
	next   http.RoundTripper
}

// traced is what the contexts of requests have that are traced already.
type traced struct{}

// RoundTrip sends the request.
func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx := r.Context()
	if ctx.Value(attempt{}) == nil || ctx.Value(traced{}) != nil {
		return t.next.RoundTrip(r)
	}
	request := metrics.APIRequestOf(r)
	ctx, span := t.tracer.Start(ctx, request.String(), trace.WithSpanKind(trace.SpanKindClient),
		trace.WithAttributes(attributes(r.Method, request)...))
	defer span.End()
	sent := r.WithContext(context.WithValue(ctx, traced{}, true))
	sent.Header = r.Header.Clone()
	propagation.TraceContext{}.Inject(ctx, propagation.HeaderCarrier(sent.Header))
	response, err := t.next.RoundTrip(sent)
	switch {
	case err != nil:
		span.SetAttributes(attribute.String("error.type", kindOf(err)))
		span.SetStatus(codes.Error, "")
	default:
		span.SetAttributes(attribute.Int("http.response.status_code", response.StatusCode))
		if response.StatusCode >= http.StatusBadRequest {
			span.SetAttributes(attribute.String("error.type", strconv.Itoa(response.StatusCode)))
			span.SetStatus(codes.Error, "")
		}
	}
	return response, err
}

// attributes are of a request, which may have no resource.
func attributes(method string, request metrics.APIRequest) []attribute.KeyValue {
	all := []attribute.KeyValue{
		attribute.String("http.request.method", method), attribute.String("kopf.verb", request.Verb),
	}
	if request.Resource != "" {
		all = append(all, attribute.String("kopf.resource", request.Kind()))
	}
	if request.Subresource != "" {
		all = append(all, attribute.String("kopf.subresource", request.Subresource))
	}
	return all
}

// WrappedRoundTripper lets client-go find the transport below, to close its idle connections.
func (t transport) WrappedRoundTripper() http.RoundTripper { return t.next }
