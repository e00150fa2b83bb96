package kopf_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace/noop"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/execution"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/internal/jsontext"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
)

// TestTracingSettings shows which tracing settings are errors.
func TestTracingSettings(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		traces kopf.TracingSettings
		want   string
	}{
		"Nothing":  {"tracing is off by default", kopf.TracingSettings{}, ""},
		"Provider": {"a provider is enough for tracing", kopf.TracingSettings{Provider: noop.NewTracerProvider()}, ""},
		"Apart": {
			"Apart without a provider is an error", kopf.TracingSettings{Apart: true},
			"Tracing.Apart: nothing is traced without a Tracing.Provider",
		},
		"Nil": {
			"a provider that is a nil pointer is an error",
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

// TestCostOfTraces shows that without a provider, attempts and requests cost as much as without traces.
func TestCostOfTraces(t *testing.T) {
	planned := func(traces kopf.TracingSettings) *handlers.Handler {
		op := kopf.New("test.example.org", kopf.Settings{Tracing: traces})
		kopf.For(op, &Widget{}).OnCreate("fn", succeed)
		plan := planOf(t, op)
		return plan[0].Handler
	}
	least := func(h *handlers.Handler) (allocations float64) {
		for i := range 5 { // goroutines of other tests may still run
			if now := costOf(t, h); i == 0 || now < allocations {
				allocations = now
			}
		}
		return allocations
	}
	bare := *planned(kopf.TracingSettings{})
	bare.Observe = nil
	without, off := least(&bare), least(planned(kopf.TracingSettings{}))
	null := least(planned(kopf.TracingSettings{Provider: noop.NewTracerProvider()}))
	traces, _ := tracer()
	full := least(planned(traces))
	t.Logf("allocations per attempt: %.0f without traces, %.0f with no provider, %.0f with one that does nothing, "+
		"%.0f with the SDK", without, off, null, full)
	if off != without {
		t.Errorf("an attempt has %.0f allocations without a provider, and %.0f without traces", off, without)
	}
	next := &memapi.Server{}
	if (kopf.TracingSettings{}).Transport(next) != next {
		t.Error("without a provider, the transport must be returned unchanged")
	}
}

// costOf returns the number of allocations of one attempt.
func costOf(t *testing.T, h *handlers.Handler) float64 {
	t.Helper()
	own := *h
	own.Call = func(context.Context, *handlers.Invocation) error { return nil }
	chain := adapters.New(&own, nil)
	about := &cause.Cause{Reason: cause.Create, Object: jsontext.NewFromValue(body(nil))}
	return testing.AllocsPerRun(200, func() {
		a := execution.NewAttempt(&own, about, nil)
		a.Due = true
		if chain.RunAttempt(t.Context(), a); !a.Outcome.Final {
			t.Fatalf("the handler was not called: %+v", a.Outcome)
		}
	})
}

// TestTracesInAManager shows that in a project's manager, requests are traced if the project wraps its transport.
func TestTracesInAManager(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		traces, recorder := tracer()
		op := kopf.New("test.example.org", kopf.Settings{Tracing: traces})
		kopf.For(op, &Widget{}).OnCreate("fn", func(ctx context.Context, c *Change) error {
			return c.APIReader.Get(ctx, client.ObjectKeyFromObject(c.Object), &Widget{})
		})
		stop := startInManager(t, traces.Transport(servedAPI()), op)
		time.Sleep(time.Minute)
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		want := []string{"get widgets.example.org in Widget fn", "Widget fn in "}
		if d := cmp.Diff(want, trees(recorder.Ended())); d != "" {
			t.Errorf("spans with their parents: -want, +got:\n%s", d)
		}
	})
}
