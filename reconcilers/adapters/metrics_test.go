package adapters_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/ptr"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/cause"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/metrics"
)

// gathered is what a registry has: the counters, and the sums and counts of histograms, by name and labels.
func gathered(t *testing.T, registry *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]float64{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			name := family.GetName()
			for _, label := range metric.GetLabel() {
				name += fmt.Sprintf(" %s=%s", label.GetName(), label.GetValue())
			}
			if histogram := metric.GetHistogram(); histogram != nil {
				values[name+" count"], values[name+" sum"] = float64(
					histogram.GetSampleCount(),
				), histogram.GetSampleSum()
			} else {
				values[name] = metric.GetCounter().GetValue()
			}
		}
	}
	return values
}

func newMetrics(t *testing.T, operator string, registry prometheus.Registerer) *metrics.Operator {
	t.Helper()
	measured, err := metrics.New(operator, registry)
	if err != nil {
		t.Fatal(err)
	}
	return measured
}

func TestMetricsCountOutcomes(t *testing.T) {
	tests := map[string]struct {
		reason  string
		outcome execution.Outcome
		want    string
	}{
		"Failure": {
			reason: "it failed permanently", outcome: execution.Outcome{Final: true, Err: errBoo}, want: "failure",
		},
		"Retry": {reason: "it will be called again", outcome: execution.Outcome{Err: errBoo}, want: "retry"},
		"Aborted": {
			reason: "it did not count", outcome: execution.Outcome{Aborted: true, Err: errBoo}, want: "aborted",
		},
		"Blocked": {
			reason: "it did not count", outcome: execution.Outcome{Aborted: true, Blocked: true, Err: errBoo},
			want: "aborted",
		},
		"Ignored": {
			reason:  "somebody may want an alert on what is ignored",
			outcome: execution.Outcome{Final: true, Ignored: errBoo}, want: "ignored",
		},
		"Success": {reason: "it is done", outcome: execution.Outcome{Final: true}, want: "success"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				registry := prometheus.NewRegistry()
				a := attemptOf(nil)
				a.Call.Handler.Call = func(context.Context, *handlers.Invocation) error {
					time.Sleep(3 * time.Second)
					a.Outcome = tc.outcome
					return nil
				}
				attempt(t.Context(), t, adapters.Chain(calling(), adapters.Measuring(newMetrics(t, "op", registry))), a)
				want := map[string]float64{
					"kopf_handler_attempts_total handler=fn kind=KopfExample operator=op outcome=" + tc.want +
						" reason=create": 1,
					"kopf_handler_duration_seconds handler=fn kind=KopfExample operator=op " +
						"reason=create count": 1,
					"kopf_handler_duration_seconds handler=fn kind=KopfExample operator=op " +
						"reason=create sum": 3,
				}
				if d := cmp.Diff(want, gathered(t, registry)); d != "" {
					t.Errorf("%s: -want, +got:\n%s", tc.reason, d)
				}
			})
		})
	}
}

// Handlers of activities have no object, so their series have an empty kind; the reason says which activity it is.
func TestMetricsOfActivities(t *testing.T) {
	registry := prometheus.NewRegistry()
	h := &handlers.Handler{ID: "fn", Family: handlers.Acting, Activity: "startup"}
	h.Act = func(context.Context, *handlers.Invocation) (any, error) { return nil, nil }
	a := execution.New(h, &cause.Cause{Reason: "startup"}, nil)
	a.Now = func() time.Time { return time.Time{} }
	attempt(t.Context(), t, whole(newMetrics(t, "op", registry)), a)
	want := map[string]float64{
		"kopf_handler_attempts_total handler=fn kind= operator=op outcome=success reason=startup": 1,
		"kopf_handler_duration_seconds handler=fn kind= operator=op reason=startup count":         1,
		"kopf_handler_duration_seconds handler=fn kind= operator=op reason=startup sum":           0,
	}
	if d := cmp.Diff(want, gathered(t, registry)); d != "" {
		t.Errorf("-want, +got:\n%s", d)
	}
}

func TestMetricsOfTwoOperators(t *testing.T) {
	registry := prometheus.NewRegistry()
	for range 2 {
		for _, operator := range []string{"one", "two"} {
			attempt(t.Context(), t, whole(newMetrics(t, operator, registry)), attemptOf(returning(nil)))
		}
	}
	got := gathered(t, registry)
	for _, operator := range []string{"one", "two"} {
		if name := "kopf_handler_attempts_total handler=fn kind=KopfExample operator=" + operator +
			" outcome=success reason=create"; got[name] != 2 {
			t.Errorf(
				"operators of one process share the metrics, and are told apart: %s is %v of %v", name, got[name], got,
			)
		}
	}
}

// What panics or is refused by a limit has come to something, too.
func TestMetricsSeeTheWholeChain(t *testing.T) {
	registry := prometheus.NewRegistry()
	chain := whole(newMetrics(t, "op", registry))
	attempt(t.Context(), t, chain, attemptOf(func(context.Context, *handlers.Invocation) error { panic(errBoo) }))
	refused := attemptOf(returning(nil))
	refused.Limits.Policy.Retries = ptr.To(0)
	attempt(t.Context(), t, chain, refused)
	got := gathered(t, registry)
	for _, outcome := range []string{"retry", "failure"} {
		if name := "kopf_handler_attempts_total handler=fn kind=KopfExample operator=op outcome=" + outcome +
			" reason=create"; got[name] != 1 {
			t.Errorf("%s is %v of %v", name, got[name], got)
		}
	}
}

// An object may ask for any number of sub-handlers; the series of metrics stay for ever.
func TestMetricsAreBounded(t *testing.T) {
	registry := prometheus.NewRegistry()
	measured := newMetrics(t, "op", registry)
	parent := &handlers.Handler{ID: "fn"}
	for i := range 100 {
		sub := (&handlers.Handler{ID: fmt.Sprint("disk", i)}).Sub(parent)
		deeper := (&handlers.Handler{ID: fmt.Sprint("part", i)}).Sub(sub)
		for _, h := range []*handlers.Handler{parent, sub, deeper} {
			a := attemptOf(returning(nil))
			h.Call, a.Call.Handler = a.Call.Handler.Call, h
			attempt(t.Context(), t, whole(measured), a)
		}
	}
	got := gathered(t, registry)
	const counted = "kopf_handler_attempts_total handler=%s kind=KopfExample operator=op outcome=success reason=create"
	if len(got) != 6 || got[fmt.Sprintf(counted, "fn")] != 100 || got[fmt.Sprintf(counted, "fn/*")] != 200 {
		t.Errorf("want one series of the handler, and one of all its sub-handlers, got %v", got)
	}
}

func TestNoMetrics(t *testing.T) {
	for name, measured := range map[string]*metrics.Operator{"Nil": nil, "Zero": {}} {
		t.Run(name, func(t *testing.T) {
			if got := attempt(
				t.Context(), t, adapters.Chain(calling(), adapters.ErrorClasses, adapters.Measuring(measured)),
				attemptOf(returning(nil)),
			); !got.Final {
				t.Errorf("who measures nothing is in nobody's way: %+v", got)
			}
		})
	}
}
