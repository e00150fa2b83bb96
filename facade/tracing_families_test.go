package kopf_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

// TestSpansOfFamilies shows that handlers of all families have spans, except for index functions.
func TestSpansOfFamilies(t *testing.T) {
	onServer(t, func(t *testing.T, server *memapi.Server) {
		putMap(server, "one")
		traces, recorder := tracer()
		op, maps := tracedMaps(kopf.Settings{Tracing: traces})
		failed := false
		op.OnStartup("begin", func(context.Context, *kopf.Activity) error {
			if !failed {
				failed = true
				return kopf.Temporary(fmt.Errorf("not yet"), time.Second)
			}
			return nil
		})
		op.OnCleanup("end", func(context.Context, *kopf.Activity) error { return nil })
		kopf.NewIndex(maps, "index", func(context.Context, *corev1.ConfigMap) (map[string]string, error) {
			return nil, nil
		})
		maps.OnEvent("event", func(context.Context, *kopf.WatchEvent[*corev1.ConfigMap]) error { return nil })
		maps.Daemon("daemon", func(ctx context.Context, _ *kopf.Task[*corev1.ConfigMap]) error {
			<-ctx.Done()
			return nil
		})
		maps.Timer("timer", 40*time.Minute, func(_ context.Context, r *kopf.Task[*corev1.ConfigMap]) error {
			if r.Retry == 0 {
				return kopf.Temporary(fmt.Errorf("not yet"), time.Minute)
			}
			return nil
		})
		traceRun(t, server, op, time.Hour)
		var got []string
		byTrace := map[trace.TraceID]int{}
		for _, span := range endedAttempts(recorder) {
			byTrace[span.SpanContext().TraceID()]++
			if text := spanLine(span); !slices.Contains(got, text) {
				got = append(got, text)
			}
		}
		slices.Sort(got)
		want := []string{
			", ConfigMap daemon #0: success Unset",
			", ConfigMap event #0: success Unset",
			", ConfigMap timer #0: retry Error *errors.errorString",
			", ConfigMap timer #1: success Unset",
			"MODIFIED, ConfigMap event #0: success Unset",
			"cleanup, cleanup end #0: success Unset",
			"startup, startup begin #0: retry Error *errors.errorString",
			"startup, startup begin #1: success Unset",
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("spans: -want, +got:\n%s", d)
		}
		joined := 0
		for _, spans := range byTrace {
			if spans == 2 {
				joined++
			}
		}
		if joined != 3 { // the startup, and two ticks of the timer
			t.Errorf("%d traces have an attempt and its retry, want 3: %v", joined, byTrace)
		}
	})
}

// TestSpansOfAdmission shows that an admission request is answered in one attempt, which has a span.
func TestSpansOfAdmission(t *testing.T) {
	traces, recorder := tracer()
	op := kopf.New("test.example.org", kopf.Settings{Tracing: traces})
	kopf.For(op, &Widget{}).Validate("quota", func(context.Context, *Admission) error {
		return kopf.Permanent(fmt.Errorf("hidden"))
	})
	verdictOf(t.Context(), t, op, request(nil))
	all := endedAttempts(recorder)
	if len(all) != 1 {
		t.Fatalf("%d spans", len(all))
	}
	if got := spanLine(all[0]); got != "CREATE, Widget quota #0: denied Error *errors.errorString" ||
		spanAttribute(all[0], "kopf.name") != "w1" {
		t.Errorf("the span of the request: got %s: %v", got, all[0].Attributes())
	}
}

// TestSpansInSpans shows that the spans of sub-handlers are inside the attempts that call them, and the spans of
// requests inside the spans of their senders.
func TestSpansInSpans(t *testing.T) {
	onServer(t, func(t *testing.T, server *memapi.Server) {
		putMap(server, "one")
		putMap(server, "other")
		traces, recorder := tracer()
		op, maps := tracedMaps(kopf.Settings{Tracing: traces})
		own := traces.Provider.Tracer("own")
		read := func(ctx context.Context, c *tracedMap) error {
			return c.Client.Get(ctx, client.ObjectKey{Namespace: "default", Name: "other"}, &corev1.ConfigMap{})
		}
		maps.When(func(_ context.Context, m *corev1.ConfigMap) bool {
			return m.Name == "one"
		}).OnCreate("fn", func(ctx context.Context, c *tracedMap) error {
			c.Sub("part", func(ctx context.Context, c *tracedMap) error {
				if c.Retry == 0 {
					return kopf.Temporary(fmt.Errorf("not yet"), time.Minute)
				}
				return read(ctx, c)
			})
			inside, span := own.Start(ctx, "mine")
			defer span.End()
			c.Patch(func(m *corev1.ConfigMap) { m.Data["seen"] = "yes" })
			return c.Flush(inside)
		})
		traceRun(t, server, op, time.Hour)
		want := []string{
			"patch configmaps in mine",
			"mine in ConfigMap fn",
			"ConfigMap fn/* in ConfigMap fn",
			"ConfigMap fn in ",
			"mine in ConfigMap fn", // it has nothing to write
			"get configmaps in ConfigMap fn/*",
			"ConfigMap fn/* in ConfigMap fn",
			"ConfigMap fn in ConfigMap fn",
		}
		if d := cmp.Diff(want, trees(recorder.Ended())); d != "" {
			t.Errorf("spans with their parents: -want, +got:\n%s", d)
		}
	})
}

// trees returns the names of the spans, each with the name of its parent.
func trees(all []sdktrace.ReadOnlySpan) (texts []string) {
	names := map[trace.SpanID]string{}
	for _, span := range all {
		names[span.SpanContext().SpanID()] = span.Name()
	}
	for _, span := range all {
		texts = append(texts, span.Name()+" in "+names[span.Parent().SpanID()])
	}
	return texts
}
