package kopf_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	corev1 "k8s.io/api/core/v1"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

type tracedMap = kopf.Change[*corev1.ConfigMap]

// tracer returns settings with a provider, and the recorder of its spans.
func tracer() (kopf.TracingSettings, *tracetest.SpanRecorder) {
	recorder := tracetest.NewSpanRecorder()
	return kopf.TracingSettings{
		Provider: sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder)),
	}, recorder
}

// tracedMaps returns an operator with the settings, and its selection of config maps.
func tracedMaps(settings kopf.Settings) (*kopf.Operator, kopf.Selection[*corev1.ConfigMap]) {
	op := kopf.New("traced.example.org", settings)
	return op, kopf.For(op, &corev1.ConfigMap{})
}

// putMap creates an object as another client.
func putMap(server *memapi.Server, name string) {
	server.Put(settings, map[string]any{
		"metadata": map[string]any{"namespace": "default", "name": name, "uid": name}, "data": map[string]any{"a": "b"},
	})
}

// traceRun runs the operator for some time, until it is idle.
func traceRun(t *testing.T, server *memapi.Server, op *kopf.Operator, during time.Duration) {
	t.Helper()
	r := facadetest.Start(t, op, facadetest.Against(memapi.Config(server)))
	r.Ready()
	time.Sleep(during)
	synctest.Wait()
	if err := r.Stop(); err != nil {
		t.Fatal(err)
	}
}

// spanAttribute returns an attribute of a span, or an empty text.
func spanAttribute(span sdktrace.ReadOnlySpan, key string) string {
	for _, one := range span.Attributes() {
		if string(one.Key) == key {
			return one.Value.Emit()
		}
	}
	return ""
}

// endedAttempts returns the spans of attempts, in the order of their ends.
func endedAttempts(recorder *tracetest.SpanRecorder) (attempts []sdktrace.ReadOnlySpan) {
	for _, span := range recorder.Ended() {
		if span.SpanKind() == trace.SpanKindInternal {
			attempts = append(attempts, span)
		}
	}
	return attempts
}

// spanLine returns a span as a text.
func spanLine(span sdktrace.ReadOnlySpan) string {
	return strings.TrimSpace(fmt.Sprintf("%s, %s #%s: %s %s %s", spanAttribute(span, "kopf.reason"), span.Name(),
		spanAttribute(span, "kopf.retry"), spanAttribute(span, "kopf.outcome"), span.Status().Code,
		spanAttribute(span, "error.type")))
}

// traceRetrying returns an operator whose handler succeeds at its last attempt.
func traceRetrying(settings kopf.Settings, last int) *kopf.Operator {
	op, maps := tracedMaps(settings)
	maps.On("fn", kopf.CreateUpdateResume(), func(_ context.Context, c *tracedMap) error {
		if c.Retry < last {
			return kopf.Temporary(fmt.Errorf("not yet"), time.Hour)
		}
		return nil
	})
	return op
}

// keptTrace returns the trace in the record of the handler, which is a part of its text.
func keptTrace(server *memapi.Server) string {
	metadata, _ := server.Object(settings, "default", "one")["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	for name, value := range annotations {
		text, _ := value.(string)
		if _, trace, found := strings.Cut(text, `"traceparent":"`); found && strings.HasSuffix(name, "/fn") {
			trace, _, _ = strings.Cut(trace, `"`)
			return trace
		}
	}
	return ""
}

// TestRecordsWithoutTraces shows that an operator without tracing adds no trace to records, and keeps existing traces.
func TestRecordsWithoutTraces(t *testing.T) {
	onServer(t, func(t *testing.T, server *memapi.Server) {
		putMap(server, "one")
		traceRun(t, server, traceRetrying(kopf.Settings{}, 9), time.Minute)
		if got := keptTrace(server); got != "" {
			t.Errorf("the record has the trace %q, although nothing is traced", got)
		}
		traces, recorder := tracer()
		traceRun(t, server, traceRetrying(kopf.Settings{Tracing: traces}, 9), time.Hour)
		first := endedAttempts(recorder)[0].SpanContext()
		want := fmt.Sprintf("00-%s-%s-01", first.TraceID(), first.SpanID())
		traceRun(t, server, traceRetrying(kopf.Settings{}, 9), 2*time.Hour)
		if got := keptTrace(server); got != want {
			t.Errorf("the record has the trace %q, not %q", got, want)
		}
	})
}

// TestTracesOverRestarts shows D-traceparent: after a restart, the attempts of one change are in the trace of the first
// one, or have a link to it.
func TestTracesOverRestarts(t *testing.T) {
	for name, tc := range map[string]struct {
		reason   string
		settings kopf.Settings
		apart    bool
		traces   int
	}{
		"AsKopf": {"as Kopf, all attempts for one change are one trace, too", kopf.AsKopf(), false, 1},
		"Apart":  {"each attempt is a trace, with a link to the first one", kopf.Settings{}, true, 4},
	} {
		t.Run(name, func(t *testing.T) {
			onServer(t, func(t *testing.T, server *memapi.Server) {
				putMap(server, "one")
				var all []sdktrace.ReadOnlySpan
				for range 2 { // two attempts in each process
					traces, recorder := tracer()
					tc.settings.Tracing = traces
					tc.settings.Tracing.Apart = tc.apart
					traceRun(t, server, traceRetrying(tc.settings, 3), 90*time.Minute)
					all = append(all, endedAttempts(recorder)...)
					time.Sleep(time.Hour)
				}
				if len(all) != 4 || keptTrace(server) != "" {
					t.Fatalf("%s: %d attempts, want 4; the record has the trace %q, want none", tc.reason, len(all),
						keptTrace(server))
				}
				checkTraces(t, tc.reason, all, tc.traces, tc.apart)
			})
		})
	}
}

func checkTraces(t *testing.T, reason string, all []sdktrace.ReadOnlySpan, want int, apart bool) {
	t.Helper()
	var traces []string
	for i, span := range all {
		traces = append(traces, span.SpanContext().TraceID().String())
		first := all[0].SpanContext()
		if apart && i > 0 && (len(span.Links()) != 1 || span.Links()[0].SpanContext.SpanID() != first.SpanID()) {
			t.Errorf("%s: attempt %d has the links %v", reason, i, span.Links())
		}
		if want == 1 && i > 0 && span.Parent().SpanID() != first.SpanID() {
			t.Errorf("%s: attempt %d is not in the first one", reason, i)
		}
	}
	slices.Sort(traces)
	if got := len(slices.Compact(traces)); got != want {
		t.Errorf("%s: %d traces, not %d", reason, got, want)
	}
}
