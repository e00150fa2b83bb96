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

	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/execution"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/internal/jsontext"
	"github.com/kopf-runtime/kopf-runtime/internal/metrics"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
)

// gathered returns the values of a registry by name and labels: counters, and the sums and counts of histograms.
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

func newMetrics(t *testing.T, operator string, registry prometheus.Registerer) *metrics.OperatorMetrics {
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
			reason:  "a permanent failure is counted as a failure",
			outcome: execution.Outcome{Final: true, Err: errOrdinary},
			want:    "failure",
		},
		"Retry": {reason: "a failure that is retried is counted as a retry",
			outcome: execution.Outcome{Err: errOrdinary},
			want:    "retry"},
		"Aborted": {
			reason:  "an aborted attempt is counted as aborted",
			outcome: execution.Outcome{Aborted: true, Err: errOrdinary},
			want:    "aborted",
		},
		"Blocked": {
			reason:  "a blocked attempt is counted as aborted",
			outcome: execution.Outcome{Aborted: true, Blocked: true, Err: errOrdinary},
			want:    "aborted",
		},
		"Ignored": {
			reason:  "an ignored error is counted, so that alerts can use it",
			outcome: execution.Outcome{Final: true, Ignored: errOrdinary}, want: "ignored",
		},
		"Success": {reason: "a success is counted as a success", outcome: execution.Outcome{Final: true},
			want: "success"},
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
				attempt(t.Context(), t, adapters.ChainAdapters(calling(),
					adapters.MeasuringAdapter(newMetrics(t, "op", registry))), a)
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

// TestMetricsOfActivities shows that the series of activities have an empty kind, and the name of the activity as the
// reason.
func TestMetricsOfActivities(t *testing.T) {
	registry := prometheus.NewRegistry()
	h := &handlers.Handler{ID: "fn", Family: handlers.Activity, Activity: "startup"}
	h.ActivityFunc = func(context.Context, *handlers.Invocation) (any, error) { return nil, nil }
	a := execution.NewAttempt(h, &cause.Cause{Reason: "startup"}, nil)
	a.Now = func() time.Time { return time.Time{} }
	attempt(t.Context(), t, wholeChain(newMetrics(t, "op", registry)), a)
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
			attempt(t.Context(), t, wholeChain(newMetrics(t, operator, registry)), attemptOf(returning(nil)))
		}
	}
	got := gathered(t, registry)
	for _, operator := range []string{"one", "two"} {
		if name := "kopf_handler_attempts_total handler=fn kind=KopfExample operator=" + operator +
			" outcome=success reason=create"; got[name] != 2 {
			t.Errorf(
				"the operators of one process must have their own series: %s is %v of %v", name, got[name], got,
			)
		}
	}
}

// TestMetricsSeeTheWholeChain shows that panics and attempts refused by a limit are counted.
func TestMetricsSeeTheWholeChain(t *testing.T) {
	registry := prometheus.NewRegistry()
	chain := wholeChain(newMetrics(t, "op", registry))
	attempt(t.Context(), t, chain, attemptOf(func(context.Context, *handlers.Invocation) error { panic(errOrdinary) }))
	refused := attemptOf(returning(nil))
	refused.Limits.Policy.Retries = ptr.To(0)
	attempt(t.Context(), t, chain, refused)
	got := gathered(t, registry)
	for _, outcome := range []string{"retry", "failure"} {
		if name := "kopf_handler_attempts_total handler=fn kind=KopfExample operator=op outcome=" + outcome +
			" reason=create"; got[name] != 1 {
			t.Errorf("%s is %v, want 1 in %v", name, got[name], got)
		}
	}
}

// TestMetricsAreBounded shows that all sub-handlers of a handler share one series, because objects can cause any number
// of them.
func TestMetricsAreBounded(t *testing.T) {
	registry := prometheus.NewRegistry()
	measured := newMetrics(t, "op", registry)
	parent := &handlers.Handler{ID: "fn"}
	for i := range 100 {
		sub := (&handlers.Handler{ID: fmt.Sprint("disk", i)}).AsSubHandler(parent)
		deeper := (&handlers.Handler{ID: fmt.Sprint("part", i)}).AsSubHandler(sub)
		for _, h := range []*handlers.Handler{parent, sub, deeper} {
			a := attemptOf(returning(nil))
			h.Call, a.Call.Handler = a.Call.Handler.Call, h
			attempt(t.Context(), t, wholeChain(measured), a)
		}
	}
	got := gathered(t, registry)
	const counted = "kopf_handler_attempts_total handler=%s kind=KopfExample operator=op outcome=success reason=create"
	if len(got) != 6 || got[fmt.Sprintf(counted, "fn")] != 100 || got[fmt.Sprintf(counted, "fn/*")] != 200 {
		t.Errorf("want one series of the handler, and one of all its sub-handlers, got %v", got)
	}
}

func TestNoMetrics(t *testing.T) {
	for name, measured := range map[string]*metrics.OperatorMetrics{"Nil": nil, "Zero": {}} {
		t.Run(name, func(t *testing.T) {
			if got := attempt(
				t.Context(), t, adapters.ChainAdapters(calling(), adapters.ErrorClasses,
					adapters.MeasuringAdapter(measured)),
				attemptOf(returning(nil)),
			); !got.Final {
				t.Errorf("without metrics, the function must be called: %+v", got)
			}
		})
	}
}

// TestMetricsOfTwoKinds shows that the series of a handler of several kinds name the kind of each attempt.
func TestMetricsOfTwoKinds(t *testing.T) {
	registry := prometheus.NewRegistry()
	chain := adapters.ChainAdapters(calling(), adapters.MeasuringAdapter(newMetrics(t, "op", registry)))
	for _, kind := range []string{"One", "Two", "Two", "One"} {
		a := attemptOf(returning(nil))
		a.Call.Cause.Object = jsontext.NewFromValue(object{"kind": kind})
		a.Outcome = execution.Outcome{Final: true}
		attempt(t.Context(), t, chain, a)
	}
	got := gathered(t, registry)
	for _, kind := range []string{"One", "Two"} {
		if name := "kopf_handler_attempts_total handler=fn kind=" + kind +
			" operator=op outcome=success reason=create"; got[name] != 2 {
			t.Errorf("each kind must have its own attempts: %s is %v, want 2 in %v", name, got[name], got)
		}
	}
}
