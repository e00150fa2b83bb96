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
	"github.com/kopf-runtime/kopf-runtime/reconcilers/cause"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
)

// server is an API server that answers all requests the same.
type server struct {
	status int
	err    error
	seen   http.Header // of the last request
}

// RoundTrip answers.
func (s *server) RoundTrip(r *http.Request) (*http.Response, error) {
	s.seen = r.Header
	if s.err != nil {
		return nil, s.err
	}
	return &http.Response{StatusCode: s.status, Body: io.NopCloser(strings.NewReader("hidden")), Request: r}, nil
}

// recorded makes a provider of which the spans are seen.
func recorded() (*sdktrace.TracerProvider, *tracetest.SpanRecorder) {
	recorder := tracetest.NewSpanRecorder()
	return sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder)), recorder
}

// attempt is the context of an attempt, and its end.
func attempt(ctx context.Context, provider *sdktrace.TracerProvider) (context.Context, func(string, error)) {
	call := &handlers.Invocation{Handler: &handlers.Handler{ID: "fn"}, Cause: &cause.Cause{}}
	return tracing.Attempts{Provider: provider, Operator: "op"}.Observer()(ctx, call)
}

// told are the attributes of a span as text.
func told(span sdktrace.ReadOnlySpan) map[string]string {
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
			"names are not told", "GET", "/api/v1/namespaces/ns/secrets/hidden", "get secrets",
			fields{"kopf.verb": "get", "kopf.resource": "secrets"},
		},
		"List": {
			"nor are selectors", "GET", "/apis/apps/v1/deployments?labelSelector=a%3Dhidden", "list deployments.apps",
			fields{"kopf.verb": "list", "kopf.resource": "deployments.apps"},
		},
		"Watch": {
			"it is another verb", "GET", "/api/v1/namespaces/ns/pods?watch=true", "watch pods",
			fields{"kopf.verb": "watch", "kopf.resource": "pods"},
		},
		"Create": {
			"the verb is not the method", "POST", "/api/v1/namespaces/ns/pods", "create pods",
			fields{"kopf.verb": "create", "kopf.resource": "pods"},
		},
		"Update": {
			"the verb is not the method", "PUT", "/apis/example.org/v1/namespaces/ns/widgets/hidden/status",
			"update widgets.example.org/status",
			fields{"kopf.verb": "update", "kopf.resource": "widgets.example.org", "kopf.subresource": "status"},
		},
		"Patch": {
			"a cluster-wide object has no namespace", "PATCH", "/apis/example.org/v1/widgets/hidden",
			"patch widgets.example.org", fields{"kopf.verb": "patch", "kopf.resource": "widgets.example.org"},
		},
		"Delete": {
			"one object", "DELETE", "/api/v1/namespaces/ns/pods/hidden", "delete pods",
			fields{"kopf.verb": "delete", "kopf.resource": "pods"},
		},
		"DeleteAll": {
			"many objects", "DELETE", "/api/v1/namespaces/ns/pods", "deletecollection pods",
			fields{"kopf.verb": "deletecollection", "kopf.resource": "pods"},
		},
		"Namespace": {
			"it is an object, too", "GET", "/api/v1/namespaces/hidden", "get namespaces",
			fields{"kopf.verb": "get", "kopf.resource": "namespaces"},
		},
		"NamespaceStatus": {
			"its status is nothing in it", "PATCH", "/api/v1/namespaces/hidden/status", "patch namespaces/status",
			fields{"kopf.verb": "patch", "kopf.resource": "namespaces", "kopf.subresource": "status"},
		},
		"Proxied": {
			"a proxy has a path of its own", "GET", "/k8s/clusters/hidden/api/v1/pods", "list pods",
			fields{"kopf.verb": "list", "kopf.resource": "pods"},
		},
		"Subpath": {
			"what a service is asked for is not told", "GET", "/api/v1/namespaces/ns/services/web/proxy/hidden?a=b",
			"get services/proxy", fields{"kopf.verb": "get", "kopf.resource": "services", "kopf.subresource": "proxy"},
		},
		"Discovery": {"it has no resource", "GET", "/apis/example.org/v1", "get", fields{"kopf.verb": "get"}},
		"Group":     {"it has no resource", "GET", "/apis", "get", fields{"kopf.verb": "get"}},
		"Elsewhere": {"it is no part of the API", "POST", "/hidden", "post", fields{"kopf.verb": "post"}},
		"Root":      {"it is no part of the API", "GET", "", "get", fields{"kopf.verb": "get"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			provider, recorder := recorded()
			ctx, ended := attempt(t.Context(), provider)
			body := strings.NewReader("hidden")
			r, err := http.NewRequestWithContext(ctx, tc.method, base+tc.path, body)
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Authorization", "hidden")
			s := &server{status: http.StatusOK}
			answer, err := tracing.Requests(provider, s).RoundTrip(r)
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
			if d := cmp.Diff(tc.want, told(spans[0])); d != "" || spans[0].Name() != tc.name {
				t.Errorf("%s: %q, want %q; -want, +got:\n%s", tc.reason, spans[0].Name(), tc.name, d)
			}
			if s.seen.Get("traceparent") == "" || r.Header.Get("traceparent") != "" {
				t.Error("the server must be told of the span, and the request must stay as it is")
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
		"Refused": {"the status says all", server{status: http.StatusConflict}, "409"},
		"Lost":    {"the text may have anything", server{err: errors.New("hidden")}, "*errors.errorString"},
	} {
		t.Run(name, func(t *testing.T) {
			provider, recorder := recorded()
			ctx, _ := attempt(t.Context(), provider)
			r, _ := http.NewRequestWithContext(ctx, http.MethodGet, "https://x.example.org/api/v1/pods", nil)
			answer, err := tracing.Requests(provider, &tc.server).RoundTrip(r)
			if err == nil {
				_ = answer.Body.Close()
			}
			if !errors.Is(err, tc.server.err) {
				t.Errorf("%s: the client gets %v", tc.reason, err)
			}
			span := recorder.Ended()[0]
			if got := told(span)["error.type"]; got != tc.want ||
				span.Status() != (sdktrace.Status{Code: codes.Error}) || len(span.Events()) > 0 {
				t.Errorf("%s: error type %q, want %q; %v, %v", tc.reason, got, tc.want, span.Status(), span.Events())
			}
		})
	}
}

// Requests of others are none of ours, and a request is traced once.
func TestRequestsOfOthers(t *testing.T) {
	provider, recorder := recorded()
	s := &server{status: http.StatusOK}
	send := func(ctx context.Context, by http.RoundTripper) {
		r, _ := http.NewRequestWithContext(ctx, http.MethodGet, "https://x.example.org/api/v1/pods", nil)
		answer, err := by.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
	}
	traced := tracing.Requests(provider, s)
	other, span := provider.Tracer("other").Start(t.Context(), "other")
	send(t.Context(), traced)
	send(other, traced)
	span.End()
	if got := recorder.Ended(); len(got) != 1 || s.seen.Get("traceparent") != "" {
		t.Errorf("requests that are not of handlers are traced: %v", got)
	}
	ctx, _ := attempt(t.Context(), provider)
	send(ctx, tracing.Requests(provider, traced))
	if got := recorder.Ended(); len(got) != 2 {
		t.Errorf("a request through two transports has %d spans", len(got)-1)
	}
	if got := tracing.Requests(nil, s); got != http.RoundTripper(s) {
		t.Error("without a provider, requests take another way")
	}
	if below, ok := traced.(interface{ WrappedRoundTripper() http.RoundTripper }); !ok ||
		below.WrappedRoundTripper() != http.RoundTripper(s) {
		t.Error("client-go does not find the transport below, of which it closes idle connections")
	}
}
