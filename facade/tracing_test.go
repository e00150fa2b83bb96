package kopf_test

import (
	"context"
	"fmt"
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
