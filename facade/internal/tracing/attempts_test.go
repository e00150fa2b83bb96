package tracing_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/tracing"
	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/discovery"
	"github.com/kopf-runtime/kopf-runtime/internal/execution"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/internal/jsontext"
	"github.com/kopf-runtime/kopf-runtime/internal/panics"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

// newInvocation returns an invocation of a create handler.
func newInvocation() *handlers.Invocation {
	return &handlers.Invocation{
		Handler: &handlers.Handler{ID: "fn"},
		Cause: &cause.Cause{Reason: cause.Create, Object: jsontext.NewFromValue(map[string]any{
			"kind": "Widget", "metadata": map[string]any{"namespace": "ns", "name": "w", "uid": "u"},
			"spec": map[string]any{"secret": "hidden"},
		})},
	}
}

// observe makes one attempt and returns its span.
func observe(
	ctx context.Context, t *testing.T, apart bool, call *handlers.Invocation, outcome string, err error,
) sdktrace.ReadOnlySpan {
	t.Helper()
	provider, recorder := newRecordedProvider()
	by := tracing.AttemptTracer{Provider: provider, Operator: "op", Apart: apart}.NewObserver()
	_, ended := by(ctx, call)
	ended(outcome, err)
	return recorder.Ended()[0]
}

func TestAttempts(t *testing.T) {
	widget := fields{"kopf.kind": "Widget", "kopf.namespace": "ns", "kopf.name": "w", "kopf.uid": "u"}
	with := func(base, more fields) fields {
		all := fields{"kopf.operator": "op", "kopf.handler": "fn", "kopf.retry": "0", "kopf.outcome": "success"}
		for _, some := range []fields{base, more} {
			for key, value := range some {
				all[key] = value
			}
		}
		return all
	}
	for name, tc := range map[string]struct {
		reason string
		change func(*handlers.Invocation)
		name   string
		want   fields
	}{
		"Creation": {
			"a span of a change has its kind, handler and reason", func(*handlers.Invocation) {}, "Widget fn",
			with(widget, fields{"kopf.reason": "create"}),
		},
		"Retry": {
			"attempts are counted from 0", func(c *handlers.Invocation) { c.Retry = 2 }, "Widget fn",
			with(widget, fields{"kopf.reason": "create", "kopf.retry": "2"}),
		},
		"Sub": {
			"the name of a span leaves out the ids of sub-handlers, as their number is not limited",
			func(c *handlers.Invocation) { c.Handler.ID, c.Handler.Root = "fn/a/b", "fn" }, "Widget fn/*",
			with(widget, fields{"kopf.reason": "create", "kopf.handler": "fn/a/b"}),
		},
		"Event": {
			"the reason of an event is its type", func(c *handlers.Invocation) {
				c.Cause.Reason, c.Cause.EventType = "", "MODIFIED"
			}, "Widget fn",
			with(widget, fields{"kopf.reason": "MODIFIED"}),
		},
		"Daemon": {
			"a span of a daemon does not have a reason",
			func(c *handlers.Invocation) { c.Cause.Reason = "" }, "Widget fn", with(widget, nil),
		},
		"Activity": {
			"a span of an activity does not have an object", func(c *handlers.Invocation) {
				c.Handler.Activity, c.Cause = "startup", &cause.Cause{Reason: "startup"}
			}, "startup fn", with(nil, fields{"kopf.reason": "startup"}),
		},
		"Admission": {
			"a span of an admission has the kind of its resource, and no name", func(c *handlers.Invocation) {
				c.Admission = &handlers.AdmissionRequest{Operation: "CREATE", Namespace: "ns"}
				c.Resource, c.Cause = &discovery.Resource{}, nil
				c.Resource.Kind = "Widget"
			}, "Widget fn", with(nil, fields{"kopf.kind": "Widget", "kopf.namespace": "ns", "kopf.reason": "CREATE"}),
		},
	} {
		t.Run(name, func(t *testing.T) {
			call := newInvocation()
			tc.change(call)
			span := observe(t.Context(), t, false, call, "success", nil)
			if d := cmp.Diff(tc.want, attributesOf(span)); d != "" || span.Name() != tc.name {
				t.Errorf("%s: %q, want %q; -want, +got:\n%s", tc.reason, span.Name(), tc.name, d)
			}
		})
	}
}

func TestErrorsOfAttempts(t *testing.T) {
	hidden := errors.New("hidden")
	for name, tc := range map[string]struct {
		reason, outcome string
		err             error
		status          codes.Code
		kind            string
	}{
		"Success": {"a successful attempt does not have an error", "success", nil, codes.Unset, ""},
		"Ignored": {"an ignored error is not recorded", "ignored", nil, codes.Unset, ""},
		"Retry": {"an error is recorded by its type without its text",
			"retry", hidden, codes.Error, "*errors.errorString"},
		"Wrapped": {
			"a wrapped error is recorded by the type of its innermost error",
			"failure", fmt.Errorf("hidden: %w", &fs.PathError{Err: fs.ErrExist}),
			codes.Error, "*errors.errorString",
		},
		"Panic": {"a panic is recorded without its value",
			"failure", &panics.PanicError{Value: "hidden"}, codes.Error, "panic"},
		"Waiting": {"a pending handler is not recorded as an error",
			"retry", &execution.PendingError{}, codes.Unset, ""},
		"Aborted": {"an aborted attempt has the type of its error, but not the error status",
			"aborted", hidden, codes.Unset, "*errors.errorString"},
	} {
		t.Run(name, func(t *testing.T) {
			span := observe(t.Context(), t, false, newInvocation(), tc.outcome, tc.err)
			if got := attributesOf(span); got["error.type"] != tc.kind || got["kopf.outcome"] != tc.outcome ||
				span.Status() != (sdktrace.Status{Code: tc.status}) || len(span.Events()) > 0 {
				t.Errorf("%s: %v, status %v, events %v", tc.reason, got, span.Status(), span.Events())
			}
		})
	}
}

const parentTrace progress.Trace = "00-0123456789abcdef0123456789abcdef-0123456789abcdef-01"

// TestTracesOfAttempts shows that an attempt joins the trace of earlier attempts, or links to the first one. It does
// not join the trace around the operator.
func TestTracesOfAttempts(t *testing.T) {
	surrounding, _ := newRecordedProvider()
	ctx, around := surrounding.Tracer("test").Start(t.Context(), "around")
	program := around.SpanContext().TraceID().String()
	const joined = "0123456789abcdef0123456789abcdef"
	for name, tc := range map[string]struct {
		reason string
		apart  bool
		change func(*handlers.Invocation)
		trace  string // empty for its own trace
		links  int
	}{
		"First": {"the first attempt begins a trace", false, func(*handlers.Invocation) {}, "", 0},
		"Next": {"the next attempt joins the trace of the first one",
			false, func(c *handlers.Invocation) { c.Trace = parentTrace }, joined, 0},
		"Malformed": {"a malformed trace is ignored, as any client can write it",
			false, func(c *handlers.Invocation) { c.Trace = "00-x" }, "", 0},
		"Apart": {"a separate attempt links to the first one",
			true, func(c *handlers.Invocation) { c.Trace = parentTrace }, "", 1},
		"ApartFirst": {
			"a first separate attempt does not have a link", true, func(*handlers.Invocation) {}, "", 0,
		},
		"Sub": {
			"a sub-handler joins the trace of the surrounding attempt", false, func(c *handlers.Invocation) {
				c.Handler.Root = "fn"
			}, program, 0,
		},
		"Admission": {
			"an admission handler joins the trace of its request", false,
			func(c *handlers.Invocation) { c.Admission = &handlers.AdmissionRequest{} }, program, 0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			call := newInvocation()
			tc.change(call)
			span := observe(ctx, t, tc.apart, call, "success", nil)
			trace := span.SpanContext().TraceID().String()
			if tc.trace != "" && trace != tc.trace || tc.trace == "" && (trace == program || trace == joined) {
				t.Errorf("%s: the trace is %s", tc.reason, trace)
			}
			if tc.trace == "" && span.Parent().IsValid() || len(span.Links()) != tc.links {
				t.Errorf("%s: the parent is %v, the links are %v", tc.reason, span.Parent(), span.Links())
			}
		})
	}
}

// TestKeptTraces shows that the span of the first attempt is kept for the next attempts.
func TestKeptTraces(t *testing.T) {
	call := newInvocation()
	span := observe(t.Context(), t, false, call, "retry", nil)
	want := fmt.Sprintf("00-%s-%s-01", span.SpanContext().TraceID(), span.SpanContext().SpanID())
	if string(call.Trace) != want || !call.Trace.IsValid() {
		t.Errorf("kept is %q, want %q", call.Trace, want)
	}
	for _, apart := range []bool{false, true} {
		call.Trace = parentTrace
		if observe(t.Context(), t, apart, call, "retry", nil); call.Trace != parentTrace {
			t.Errorf("the second attempt replaces the trace of the first: %q", call.Trace)
		}
	}
	call = newInvocation()
	call.Handler.Root = "root"
	if observe(t.Context(), t, false, call, "retry", nil); call.Trace != "" {
		t.Errorf("a sub-handler must not keep a trace: %q", call.Trace)
	}
	call = newInvocation()
	tracing.AttemptTracer{Provider: noop.NewTracerProvider()}.NewObserver()(t.Context(), call)
	if call.Trace != "" {
		t.Errorf("a provider that does not trace must not keep a trace: %q", call.Trace)
	}
	if (tracing.AttemptTracer{}).NewObserver() != nil {
		t.Error("without a provider, attempts must not be observed")
	}
}

// TestSampling shows that a trace that is not sampled stays so at the next attempt. Otherwise, it would begin in the
// middle.
func TestSampling(t *testing.T) {
	recorder := tracetest.NewSpanRecorder()
	for i, sampler := range []sdktrace.Sampler{sdktrace.NeverSample(), sdktrace.AlwaysSample()} {
		call := newInvocation()
		for range 2 {
			provider := sdktrace.NewTracerProvider(
				sdktrace.WithSpanProcessor(recorder), sdktrace.WithSampler(sdktrace.ParentBased(sampler)),
			)
			_, ended := tracing.AttemptTracer{Provider: provider}.NewObserver()(t.Context(), call)
			ended("retry", nil)
			sampler = sdktrace.AlwaysSample()
		}
		if got := len(recorder.Ended()); got != 2*i {
			t.Errorf("%d spans are recorded, want %d", got, 2*i)
		}
	}
}
