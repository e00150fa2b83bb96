package facade_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace/noop"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/cause"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
)

func TestTracingSettings(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		traces kopf.TracingSettings
		want   string
	}{
		"Nothing":  {"it is the default", kopf.TracingSettings{}, ""},
		"Provider": {"it is enough", kopf.TracingSettings{Provider: noop.NewTracerProvider()}, ""},
		"Apart": {
			"it would be without effect", kopf.TracingSettings{Apart: true},
			"Tracing.Apart: nothing is traced without a Tracing.Provider",
		},
		"Nil": {
			"it would panic at the first attempt",
			kopf.TracingSettings{Provider: (*sdktrace.TracerProvider)(nil)},
			"Tracing.Provider: it is a nil *trace.TracerProvider",
		},
	} {
		t.Run(name, func(t *testing.T) {
			op := kopf.New("test.example.org", kopf.Settings{Tracing: tc.traces})
			kopf.For(op, &Widget{}).OnCreate("fn", succeed)
			_, err := kopf.Plan(op, newScheme(t))
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("%s: want %q, got %v", tc.reason, tc.want, err)
			}
		})
	}
}

// In a program, the startup may give the provider: what comes after it is traced.
func TestStartupGivesProvider(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := memapi.New()
		putMap(server, "one")
		traces, recorder := tracer()
		op, maps := tracedMaps(kopf.Settings{})
		op.OnStartup("begin", func(_ context.Context, s *kopf.Startup) error {
			s.Settings.Tracing = traces
			return nil
		})
		maps.OnCreate("fn", func(ctx context.Context, c *tracedMap) error {
			return c.Flush(ctx)
		})
		traceRun(t, server, op, time.Minute)
		if all := endedAttempts(recorder); len(all) != 1 || spanLine(all[0]) != "create, ConfigMap fn #0: success Unset" {
			t.Errorf("got %v", all)
		}
	})
}

// Without a provider, an attempt costs what it does without traces, and a request does, too.
func TestCostOfTraces(t *testing.T) {
	planned := func(traces kopf.TracingSettings) *handlers.Handler {
		op := kopf.New("test.example.org", kopf.Settings{Tracing: traces})
		kopf.For(op, &Widget{}).OnCreate("fn", succeed)
		plan, err := kopf.Plan(op, newScheme(t))
		if err != nil {
			t.Fatal(err)
		}
		return plan[0].Handler
	}
	cost := func(h *handlers.Handler) float64 {
		own := *h
		own.Call = func(context.Context, *handlers.Call) error { return nil }
		chain := adapters.New(&own, nil)
		about := &cause.Cause{Reason: cause.Create, Body: body(nil)}
		return testing.AllocsPerRun(200, func() {
			a := execution.New(&own, about, nil)
			a.Due = true
			if chain.Run(t.Context(), a); !a.Outcome.Final {
				t.Fatalf("it was not called: %+v", a.Outcome)
			}
		})
	}
	bare := *planned(kopf.TracingSettings{})
	bare.Observe = nil
	without, off := cost(&bare), cost(planned(kopf.TracingSettings{}))
	null := cost(planned(kopf.TracingSettings{Provider: noop.NewTracerProvider()}))
	traces, _ := tracer()
	real := cost(planned(traces))
	t.Logf("allocations per attempt: %.0f without traces, %.0f with no provider, %.0f with one that does nothing, "+
		"%.0f with the SDK", without, off, null, real)
	if off != without {
		t.Errorf("an attempt has %.0f allocations without a provider, and %.0f without traces", off, without)
	}
	next := &memapi.Server{}
	if (kopf.TracingSettings{}).Transport(next) != next {
		t.Error("without a provider, requests take another way")
	}
}
