package tracing

import (
	"context"
	"net/http"
	"strconv"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/kopf-runtime/kopf-runtime/internal/metrics"
)

// TraceRequests returns a transport that creates a span for each request of an attempt. It recognizes these requests by
// their context, and forwards all others unchanged. The span ends when the response headers have arrived. The header
// traceparent passes the trace to the server.
func TraceRequests(provider trace.TracerProvider, next http.RoundTripper) http.RoundTripper {
	if provider == nil {
		return next
	}
	return transport{provider.Tracer(instrumentationScope), next}
}

// transport creates the spans. It runs below the other wrappers of a client.
type transport struct {
	tracer trace.Tracer
	next   http.RoundTripper
}

// traced is the key of a context value that marks a traced request. A client can have several layers of this transport,
// and only the outermost one creates a span.
type traced struct{}

// RoundTrip sends the request.
func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx := r.Context()
	if ctx.Value(attempt{}) == nil || ctx.Value(traced{}) != nil {
		return t.next.RoundTrip(r)
	}
	request := metrics.APIRequestOf(r)
	ctx, span := t.tracer.Start(ctx, request.String(), trace.WithSpanKind(trace.SpanKindClient),
		trace.WithAttributes(requestAttributes(r.Method, request)...))
	defer span.End()
	// A RoundTripper must not change the original request.
	sent := r.WithContext(context.WithValue(ctx, traced{}, true))
	sent.Header = r.Header.Clone()
	propagation.TraceContext{}.Inject(ctx, propagation.HeaderCarrier(sent.Header))
	response, err := t.next.RoundTrip(sent)
	switch {
	case err != nil:
		span.SetAttributes(attribute.String("error.type", errorTypeOf(err)))
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

// requestAttributes returns the attributes of a request. A request without a resource, such as for /version, lacks some
// of them.
func requestAttributes(method string, request metrics.APIRequest) []attribute.KeyValue {
	all := []attribute.KeyValue{
		attribute.String("http.request.method", method), attribute.String("kopf.verb", request.Verb),
	}
	if request.Resource != "" {
		all = append(all, attribute.String("kopf.resource", request.GroupResource()))
	}
	if request.Subresource != "" {
		all = append(all, attribute.String("kopf.subresource", request.Subresource))
	}
	return all
}

// WrappedRoundTripper lets client-go find the wrapped transport, to close its idle connections.
func (t transport) WrappedRoundTripper() http.RoundTripper { return t.next }
