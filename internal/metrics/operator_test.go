package metrics_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/kopf-runtime/kopf-runtime/internal/metrics"
)

var errBoo = errors.New("boo")

// refusingRegistry is a registry that refuses all collectors.
type refusingRegistry struct{ prometheus.Registerer }

func (refusingRegistry) Register(prometheus.Collector) error { return errBoo }

// TestNewFails shows that errors of the registry, such as a name in use, are returned.
func TestNewFails(t *testing.T) {
	if _, err := metrics.New("op", refusingRegistry{}); !errors.Is(err, errBoo) {
		t.Errorf("the error of the registry is not returned: %v", err)
	}
	for _, name := range []string{
		"kopf_handler_attempts_total", "kopf_handler_duration_seconds", "kopf_change_latency_seconds",
		"kopf_events_dropped_total", "kopf_memory_losses_total", "kopf_posted_events_total",
		"kopf_children_repaired_total",
		"kopf_api_requests_total", "kopf_active_workers", "kopf_workqueue_depth", "kopf_paused",
		"kopf_watch_age_seconds",
	} {
		registry := prometheus.NewRegistry()
		registry.MustRegister(prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: "A foreign metric."}))
		if _, err := metrics.New("op", registry); err == nil {
			t.Errorf("%s exists in another component, and no error is returned", name)
		}
	}
}

func newOperatorMetrics(t *testing.T, name string, registry prometheus.Registerer) *metrics.OperatorMetrics {
	t.Helper()
	o, err := metrics.New(name, registry)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// gatherMetrics returns the metrics of the registry by name and labels, with histograms as their sums.
func gatherMetrics(t *testing.T, registry *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			name := strings.TrimPrefix(family.GetName(), "kopf_")
			for _, label := range metric.GetLabel() {
				name += fmt.Sprintf(" %s=%s", label.GetName(), label.GetValue())
			}
			got[name] = metric.GetCounter().GetValue() + metric.GetGauge().GetValue() +
				metric.GetHistogram().GetSampleSum()
		}
	}
	return got
}

// useAllFamilies uses every metric family once.
func useAllFamilies(o *metrics.OperatorMetrics) {
	o.CountAttempt("Pod", "fn", "create", "retry", time.Second)
	o.ObserveLatency("Pod", "create", time.Minute)
	o.DroppedCounter("Pod")()
	o.CountLoss("Pod")
	o.CountPosted("posted")
	o.CountRepair("Pod", "Secret")
	if occupied, waiting := o.OccupiedGauge("Pod"), o.WaitingGauge("Pod"); occupied != nil {
		occupied("fn", 2)
		waiting(3)
	}
	o.AddSource(func(emit metrics.Emit) {
		emit(metrics.Paused, 1)
		emit(metrics.Unhandled, 2, "Pod")
		emit(metrics.Unhandled, 3, "Pod")
		emit(metrics.OldestUnhandled, 7, "Pod")
		emit(metrics.OldestUnhandled, 5, "Pod")
		emit(metrics.Daemons, 1, "Pod", "d", "running")
	})
}

var expectedMetrics = map[string]float64{
	"handler_attempts_total handler=fn kind=Pod operator=op outcome=retry reason=create": 1,
	"handler_duration_seconds handler=fn kind=Pod operator=op reason=create":             1,
	"change_latency_seconds kind=Pod operator=op reason=create":                          60,
	"memory_losses_total kind=Pod operator=op":                                           1,
	"events_dropped_total kind=Pod operator=op":                                          1,
	"posted_events_total operator=op outcome=posted":                                     1,
	"children_repaired_total child=Secret kind=Pod operator=op":                          1,
}

// TestOneOperatorAfterAnother shows that namespaces of a kind share metrics, that states end with the operator, and
// that counters continue in the next operator of the name.
func TestOneOperatorAfterAnother(t *testing.T) {
	registry := prometheus.NewRegistry()
	for round := 1; round <= 2; round++ {
		o := newOperatorMetrics(t, "op", registry)
		useAllFamilies(o)
		want := map[string]float64{
			"active_workers handler=fn kind=Pod operator=op": 2, "workqueue_depth kind=Pod operator=op": 3,
			"paused operator=op": 1, "unhandled_changes kind=Pod operator=op": 5,
			"oldest_unhandled_change_age_seconds kind=Pod operator=op": 7,
			"daemons handler=d kind=Pod operator=op state=running":     1,
		}
		after := map[string]float64{}
		for name, value := range expectedMetrics {
			want[name], after[name] = value*float64(round), value*float64(round)
		}
		if d := cmp.Diff(want, gatherMetrics(t, registry)); d != "" {
			t.Errorf("round %d: -want, +got:\n%s", round, d)
		}
		leaving := o.OccupiedGauge("Pod")
		o.RemoveStates()
		o.RemoveStates()
		leaving("fn", -1)
		if d := cmp.Diff(after, gatherMetrics(t, registry)); d != "" {
			t.Errorf("round %d: after the end, -want, +got:\n%s", round, d)
		}
	}
}

// TestTwoOperators shows that operators of one process share the families and end separately.
func TestTwoOperators(t *testing.T) {
	registry := prometheus.NewRegistry()
	first, second := newOperatorMetrics(t, "first", registry), newOperatorMetrics(t, "second", registry)
	useAllFamilies(first)
	useAllFamilies(second)
	first.RemoveStates()
	got := gatherMetrics(t, registry)
	for name, want := range map[string]bool{
		"paused operator=first": false, "paused operator=second": true,
		"workqueue_depth kind=Pod operator=first": false, "workqueue_depth kind=Pod operator=second": true,
	} {
		if _, found := got[name]; found != want {
			t.Errorf("%s exists: %t, want %t", name, found, want)
		}
	}
}

// TestNothingIsMeasured shows that a nil or zero value measures nothing and can be used.
func TestNothingIsMeasured(t *testing.T) {
	for name, none := range map[string]*metrics.OperatorMetrics{"Nil": nil, "Zero": {}} {
		useAllFamilies(none)
		none.RemoveStates()
		if none.OccupiedGauge("Pod") != nil || none.WaitingGauge("Pod") != nil {
			t.Errorf("%s: an operator without metrics returns gauges", name)
		}
		if next := fixedStatus(200); none.WrapRoundTrip(next.RoundTrip) == nil {
			t.Errorf("%s: requests are not forwarded", name)
		}
	}
}

// TestNames shows that names, units and help follow the conventions of Prometheus.
func TestNames(t *testing.T) {
	registry := prometheus.NewRegistry()
	o := newOperatorMetrics(t, "op", registry)
	useAllFamilies(o)
	o.AddSource(func(emit metrics.Emit) {
		labels := map[metrics.StateFamily][]string{
			metrics.Paused: {}, metrics.Retries: {"a", "b"}, metrics.Unhandled: {"a"}, metrics.OldestUnhandled: {"a"},
			metrics.Daemons: {"a", "b", "c"}, metrics.Timers: {"a", "b", "c"}, metrics.IndexKeys: {"a"},
			metrics.IndexedObjects: {"a"}, metrics.RememberedObjects: {"a"}, metrics.WatchAge: {"a"},
			metrics.PausedNamespaces: {}, metrics.RangesHeld: {}, metrics.RangeMoves: {"a"}, metrics.UnownedRanges: {},
			metrics.OldestUnownedRange: {}, metrics.Replicas: {},
		}
		for state, values := range labels {
			emit(state, 1, values...)
		}
	})
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	if len(families) != 25 {
		t.Errorf("got %d families, want all but the one of requests", len(families))
	}
	problems, err := promlint.NewWithMetricFamilies(families).Lint()
	if err != nil || len(problems) > 0 {
		t.Errorf("error %v, problems %v", err, problems)
	}
}
