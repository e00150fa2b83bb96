package tracing_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/tracing"
	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
)

// server is an API server that gives the same answer to all requests.
type server struct {
	status        int
	err           error
	requestHeader http.Header // of the last request
}

// RoundTrip records the headers and returns the answer.
func (s *server) RoundTrip(r *http.Request) (*http.Response, error) {
	s.requestHeader = r.Header
	if s.err != nil {
		return nil, s.err
	}
	return &http.Response{StatusCode: s.status, Body: io.NopCloser(strings.NewReader("hidden")), Request: r}, nil
}

// newRecordedProvider returns a provider with a recorder of its spans.
func newRecordedProvider() (*sdktrace.TracerProvider, *tracetest.SpanRecorder) {
	recorder := tracetest.NewSpanRecorder()
	return sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder)), recorder
}

// attempt begins an attempt and returns its context and the function that ends it.
func attempt(ctx context.Context, provider *sdktrace.TracerProvider) (context.Context, func(string, error)) {
	call := &handlers.Invocation{Handler: &handlers.Handler{ID: "fn"}, Cause: &cause.Cause{}}
	return tracing.AttemptTracer{Provider: provider, Operator: "op"}.NewObserver()(ctx, call)
}

// attributesOf returns the attributes of a span as text.
func attributesOf(span sdktrace.ReadOnlySpan) map[string]string {
	all := map[string]string{}
	for _, one := range span.Attributes() {
		all[string(one.Key)] = one.Value.Emit()
	}
	return all
}

type fields = map[string]string

func TestRequests(t *testing.T) {
	const base = "https://cluster.example.org"
	cases := map[string]struct {
		reason, method, path, name string
		want                       fields
	}{
		"Get": {
			"the span does not contain names of objects", "GET", "/api/v1/namespaces/ns/secrets/hidden", "get secrets",
			fields{"kopf.verb": "get", "kopf.resource": "secrets"},
		},
		"List": {
			"the span does not contain selectors",
			"GET", "/apis/apps/v1/deployments?labelSelector=a%3Dhidden", "list deployments.apps",
			fields{"kopf.verb": "list", "kopf.resource": "deployments.apps"},
		},
		"Watch": {
			"a watch has its own verb", "GET", "/api/v1/namespaces/ns/pods?watch=true", "watch pods",
			fields{"kopf.verb": "watch", "kopf.resource": "pods"},
		},
		"Create": {
			"POST is the verb create", "POST", "/api/v1/namespaces/ns/pods", "create pods",
			fields{"kopf.verb": "create", "kopf.resource": "pods"},
		},
		"Update": {
			"PUT on a status is the verb update with a subresource",
			"PUT", "/apis/example.org/v1/namespaces/ns/widgets/hidden/status",
			"update widgets.example.org/status",
			fields{"kopf.verb": "update", "kopf.resource": "widgets.example.org", "kopf.subresource": "status"},
		},
		"Patch": {
			"a cluster-scoped object is recognized", "PATCH", "/apis/example.org/v1/widgets/hidden",
			"patch widgets.example.org", fields{"kopf.verb": "patch", "kopf.resource": "widgets.example.org"},
		},
		"Delete": {
			"DELETE of one object is the verb delete", "DELETE", "/api/v1/namespaces/ns/pods/hidden", "delete pods",
			fields{"kopf.verb": "delete", "kopf.resource": "pods"},
		},
		"DeleteAll": {
			"DELETE of a list is the verb deletecollection",
			"DELETE", "/api/v1/namespaces/ns/pods", "deletecollection pods",
			fields{"kopf.verb": "deletecollection", "kopf.resource": "pods"},
		},
		"Namespace": {
			"a namespace is a resource", "GET", "/api/v1/namespaces/hidden", "get namespaces",
			fields{"kopf.verb": "get", "kopf.resource": "namespaces"},
		},
		"NamespaceStatus": {
			"the status of a namespace is a subresource",
			"PATCH", "/api/v1/namespaces/hidden/status", "patch namespaces/status",
			fields{"kopf.verb": "patch", "kopf.resource": "namespaces", "kopf.subresource": "status"},
		},
		"Proxied": {
			"the path of a proxy before the API is skipped", "GET", "/k8s/clusters/hidden/api/v1/pods", "list pods",
			fields{"kopf.verb": "list", "kopf.resource": "pods"},
		},
		"Subpath": {
			"the path behind a proxied service is left out",
			"GET", "/api/v1/namespaces/ns/services/web/proxy/hidden?a=b",
			"get services/proxy", fields{"kopf.verb": "get", "kopf.resource": "services", "kopf.subresource": "proxy"},
		},
		"Discovery": {"a request for the resources of a group does not have a resource",
			"GET", "/apis/example.org/v1", "get", fields{"kopf.verb": "get"}},
		"Group": {"a request for all groups does not have a resource",
			"GET", "/apis", "get", fields{"kopf.verb": "get"}},
		"Elsewhere": {"a path outside of the API does not have a resource",
			"POST", "/hidden", "post", fields{"kopf.verb": "post"}},
		"Root": {"the root path does not have a resource", "GET", "", "get", fields{"kopf.verb": "get"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			provider, recorder := newRecordedProvider()
			ctx, ended := attempt(t.Context(), provider)
			body := strings.NewReader("hidden")
			r, err := http.NewRequestWithContext(ctx, tc.method, base+tc.path, body)
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Authorization", "hidden")
			s := &server{status: http.StatusOK}
			answer, err := tracing.TraceRequests(provider, s).RoundTrip(r)
			if err != nil {
				t.Fatal(err)
			}
			_ = answer.Body.Close()
			ended("success", nil)
			spans := recorder.Ended()
			if len(spans) != 2 || spans[0].Parent().SpanID() != spans[1].SpanContext().SpanID() {
				t.Fatalf("%s: want a span in that of the attempt: %v", tc.reason, spans)
			}
			tc.want["http.request.method"], tc.want["http.response.status_code"] = tc.method, "200"
			if d := cmp.Diff(tc.want, attributesOf(spans[0])); d != "" || spans[0].Name() != tc.name {
				t.Errorf("%s: %q, want %q; -want, +got:\n%s", tc.reason, spans[0].Name(), tc.name, d)
			}
			if s.requestHeader.Get("traceparent") == "" || r.Header.Get("traceparent") != "" {
				t.Error("the server must get the trace, and the caller's request must stay unchanged")
			}
		})
	}
}

func TestRequestsThatFail(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		server server
		want   string
	}{
		"Refused": {"a refused request is recorded by its status", server{status: http.StatusConflict}, "409"},
		"Lost": {"a failed request is recorded by the type of its error without the text",
			server{err: errors.New("hidden")}, "*errors.errorString"},
	} {
		t.Run(name, func(t *testing.T) {
			provider, recorder := newRecordedProvider()
			ctx, _ := attempt(t.Context(), provider)
			r, _ := http.NewRequestWithContext(ctx, http.MethodGet, "https://x.example.org/api/v1/pods", nil)
			answer, err := tracing.TraceRequests(provider, &tc.server).RoundTrip(r)
			if err == nil {
				_ = answer.Body.Close()
			}
			if !errors.Is(err, tc.server.err) {
				t.Errorf("%s: the client gets the error %v", tc.reason, err)
			}
			span := recorder.Ended()[0]
			if got := attributesOf(span)["error.type"]; got != tc.want ||
				span.Status() != (sdktrace.Status{Code: codes.Error}) || len(span.Events()) > 0 {
				t.Errorf("%s: error type %q, want %q; %v, %v", tc.reason, got, tc.want, span.Status(), span.Events())
			}
		})
	}
}

// TestRequestsOfOthers shows that requests outside of handlers are not traced, and that a request through two
// transports is traced once.
func TestRequestsOfOthers(t *testing.T) {
	provider, recorder := newRecordedProvider()
	s := &server{status: http.StatusOK}
	send := func(ctx context.Context, by http.RoundTripper) {
		r, _ := http.NewRequestWithContext(ctx, http.MethodGet, "https://x.example.org/api/v1/pods", nil)
		answer, err := by.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
	}
	traced := tracing.TraceRequests(provider, s)
	other, span := provider.Tracer("other").Start(t.Context(), "other")
	send(t.Context(), traced)
	send(other, traced)
	span.End()
	if got := recorder.Ended(); len(got) != 1 || s.requestHeader.Get("traceparent") != "" {
		t.Errorf("requests outside of handlers are traced: %v", got)
	}
	ctx, _ := attempt(t.Context(), provider)
	send(ctx, tracing.TraceRequests(provider, traced))
	if got := recorder.Ended(); len(got) != 2 {
		t.Errorf("a request through two transports has %d spans", len(got)-1)
	}
	if got := tracing.TraceRequests(nil, s); got != http.RoundTripper(s) {
		t.Error("without a provider, the transport must stay the same")
	}
	if below, ok := traced.(interface{ WrappedRoundTripper() http.RoundTripper }); !ok ||
		below.WrappedRoundTripper() != http.RoundTripper(s) {
		t.Error("client-go must find the wrapped transport to close its idle connections")
	}
}
