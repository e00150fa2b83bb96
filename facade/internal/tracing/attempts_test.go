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
	"github.com/kopf-runtime/kopf-runtime/reconcilers/cause"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/discovery"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/panics"
	"github.com/kopf-runtime/kopf-runtime/storage/jsontext"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

// stub is the handler of a creation that succeeds.
func stub() *handlers.Invocation {
	return &handlers.Invocation{
		Handler: &handlers.Handler{ID: "fn"},
		Cause: &cause.Cause{Reason: cause.Create, Object: jsontext.Of(map[string]any{
			"kind": "Widget", "metadata": map[string]any{"namespace": "ns", "name": "w", "uid": "u"},
			"spec": map[string]any{"secret": "hidden"},
		})},
	}
}

// observe makes one attempt, and gives its span.
func observe(
	ctx context.Context, t *testing.T, apart bool, call *handlers.Invocation, outcome string, err error,
) sdktrace.ReadOnlySpan {
	t.Helper()
	provider, recorder := recorded()
	by := tracing.Attempts{Provider: provider, Operator: "op", Apart: apart}.Observer()
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
			"there may be any number of them, so their ids are in no name",
			func(c *handlers.Invocation) { c.Handler.ID, c.Handler.Root = "fn/a/b", "fn" }, "Widget fn/*",
			with(widget, fields{"kopf.reason": "create", "kopf.handler": "fn/a/b"}),
		},
		"Event": {
			"it has a type", func(c *handlers.Invocation) {
				c.Cause.Reason, c.Cause.Type = "", "MODIFIED"
			}, "Widget fn",
			with(widget, fields{"kopf.reason": "MODIFIED"}),
		},
		"Daemon": {
			"it has no reason", func(c *handlers.Invocation) { c.Cause.Reason = "" }, "Widget fn", with(widget, nil),
		},
		"Activity": {
			"it has no object", func(c *handlers.Invocation) {
				c.Handler.Activity, c.Cause = "startup", &cause.Cause{Reason: "startup"}
			}, "startup fn", with(nil, fields{"kopf.reason": "startup"}),
		},
		"Admission": {
			"the request may have anything for a kind, and no name yet", func(c *handlers.Invocation) {
				c.Admission = &handlers.Admission{Operation: "CREATE", Namespace: "ns"}
				c.Resource, c.Cause = &discovery.Resource{}, nil
				c.Resource.Kind = "Widget"
			}, "Widget fn", with(nil, fields{"kopf.kind": "Widget", "kopf.namespace": "ns", "kopf.reason": "CREATE"}),
		},
	} {
		t.Run(name, func(t *testing.T) {
			call := stub()
			tc.change(call)
			span := observe(t.Context(), t, false, call, "success", nil)
			if d := cmp.Diff(tc.want, told(span)); d != "" || span.Name() != tc.name {
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
		"Success": {"there is no error", "success", nil, codes.Unset, ""},
		"Ignored": {"it counts as a success", "ignored", nil, codes.Unset, ""},
		"Retry":   {"the text may have anything", "retry", hidden, codes.Error, "*errors.errorString"},
		"Wrapped": {
			"what is innermost says most", "failure", fmt.Errorf("hidden: %w", &fs.PathError{Err: fs.ErrExist}),
			codes.Error, "*errors.errorString",
		},
		"Panic":   {"its value may be anything", "failure", &panics.Error{Value: "hidden"}, codes.Error, "panic"},
		"Waiting": {"it is no error", "retry", &execution.PendingError{}, codes.Unset, ""},
		"Aborted": {"it does not count", "aborted", hidden, codes.Unset, "*errors.errorString"},
	} {
		t.Run(name, func(t *testing.T) {
			span := observe(t.Context(), t, false, stub(), tc.outcome, tc.err)
			if got := told(span); got["error.type"] != tc.kind || got["kopf.outcome"] != tc.outcome ||
				span.Status() != (sdktrace.Status{Code: tc.status}) || len(span.Events()) > 0 {
				t.Errorf("%s: %v, status %v, events %v", tc.reason, got, span.Status(), span.Events())
			}
		})
	}
}

const before progress.Trace = "00-0123456789abcdef0123456789abcdef-0123456789abcdef-01"

// An attempt joins those before it, or tells of the first of them; what surrounds the operator is not joined.
func TestTracesOfAttempts(t *testing.T) {
	surrounding, _ := recorded()
	ctx, around := surrounding.Tracer("test").Start(t.Context(), "around")
	program := around.SpanContext().TraceID().String()
	const joined = "0123456789abcdef0123456789abcdef"
	for name, tc := range map[string]struct {
		reason string
		apart  bool
		change func(*handlers.Invocation)
		trace  string // empty is one of its own
		links  int
	}{
		"First":     {"it begins a trace", false, func(*handlers.Invocation) {}, "", 0},
		"Next":      {"it joins", false, func(c *handlers.Invocation) { c.Trace = before }, joined, 0},
		"Malformed": {"anybody may write it", false, func(c *handlers.Invocation) { c.Trace = "00-x" }, "", 0},
		"Apart":     {"it has a link", true, func(c *handlers.Invocation) { c.Trace = before }, "", 1},
		"ApartFirst": {
			"there is none to link to", true, func(*handlers.Invocation) {}, "", 0,
		},
		"Sub": {
			"it is a part of the attempt around", false, func(c *handlers.Invocation) {
				c.Handler.Root = "fn"
			}, program, 0,
		},
		"Admission": {
			"its server may trace requests", false,
			func(c *handlers.Invocation) { c.Admission = &handlers.Admission{} }, program, 0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			call := stub()
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

// What is kept for the next attempts is the span of the first one.
func TestKeptTraces(t *testing.T) {
	call := stub()
	span := observe(t.Context(), t, false, call, "retry", nil)
	want := fmt.Sprintf("00-%s-%s-01", span.SpanContext().TraceID(), span.SpanContext().SpanID())
	if string(call.Trace) != want || !call.Trace.Valid() {
		t.Errorf("kept is %q, not %q", call.Trace, want)
	}
	for _, apart := range []bool{false, true} {
		call.Trace = before
		if observe(t.Context(), t, apart, call, "retry", nil); call.Trace != before {
			t.Errorf("the second attempt takes the place of the first: %q", call.Trace)
		}
	}
	call = stub()
	call.Handler.Root = "root"
	if observe(t.Context(), t, false, call, "retry", nil); call.Trace != "" {
		t.Errorf("a sub-handler has a trace of its own: %q", call.Trace)
	}
	call = stub()
	tracing.Attempts{Provider: noop.NewTracerProvider()}.Observer()(t.Context(), call)
	if call.Trace != "" {
		t.Errorf("there is no trace to be kept: %q", call.Trace)
	}
	if (tracing.Attempts{}).Observer() != nil {
		t.Error("without a provider, attempts are observed")
	}
}

// A trace that is not sampled is not either at the next attempt, or it would begin in the middle.
func TestSampling(t *testing.T) {
	recorder := tracetest.NewSpanRecorder()
	for i, sampler := range []sdktrace.Sampler{sdktrace.NeverSample(), sdktrace.AlwaysSample()} {
		call := stub()
		for range 2 {
			provider := sdktrace.NewTracerProvider(
				sdktrace.WithSpanProcessor(recorder), sdktrace.WithSampler(sdktrace.ParentBased(sampler)),
			)
			_, ended := tracing.Attempts{Provider: provider}.Observer()(t.Context(), call)
			ended("retry", nil)
			sampler = sdktrace.AlwaysSample()
		}
		if got := len(recorder.Ended()); got != 2*i {
			t.Errorf("%d spans are recorded, not %d", got, 2*i)
		}
	}
}
