package metrics

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// OperatorMetrics has the metrics of one operator. It is safe for concurrent use. The zero value and nil measure
// nothing.
type OperatorMetrics struct {
	name  string      // value of the label "operator"
	ended atomic.Bool // stops gauges that would otherwise return after the end

	attempts, droppedEvents, memoryLosses, loopCalls, postedEvents, repairedChildren, requests *prometheus.CounterVec
	durations, latencies                                                                       *prometheus.HistogramVec
	activeWorkers, queueDepth                                                                  *prometheus.GaugeVec
	states                                                                                     *states
}

// latencyBuckets are in seconds, up to one hour: a change with retries can take hours.
var latencyBuckets = []float64{.01, .05, .1, .5, 1, 5, 10, 30, 60, 300, 900, 3600}

// New registers the families that all operators of the registry share, or finds those that another operator has
// registered. The name becomes the value of the label "operator". New returns an error if the registry refuses a
// family, for example because it has a foreign one with the same name.
func New(name string, registry prometheus.Registerer) (*OperatorMetrics, error) {
	r := &registrar{registry: registry}
	o := &OperatorMetrics{name: name}
	o.attempts = r.newCounter("kopf_handler_attempts_total",
		"Calls of handlers by what came of them.", "kind", "handler", "reason", "outcome")
	o.durations = r.newHistogram("kopf_handler_duration_seconds",
		"How long the calls of handlers took.", prometheus.DefBuckets, "kind", "handler", "reason")
	o.latencies = r.newHistogram("kopf_change_latency_seconds",
		"From a change to the end of all its handlers, retries included.", latencyBuckets, "kind", "reason")
	o.droppedEvents = r.newCounter("kopf_events_dropped_total",
		"Raw events that no handler has seen, because too many were waiting.", "kind")
	o.memoryLosses = r.newCounter("kopf_memory_losses_total",
		"Times that another client was found to have removed the annotations or the finalizer of an object.", "kind")
	o.loopCalls = r.newCounter("kopf_handler_loops_total",
		"Calls that have changed the object, by which the handler is called again and again, and delayed.",
		"kind", "handler")
	o.postedEvents = r.newCounter("kopf_posted_events_total",
		"Kubernetes events that handlers have posted, by what came of them.", "outcome")
	o.repairedChildren = r.newCounter("kopf_children_repaired_total",
		"Declared children that were changed or deleted, and are back.", "kind", "child")
	o.requests = r.newCounter("kopf_api_requests_total",
		"Requests of the framework to the API server, each attempt of its own.", "verb", "code")
	o.activeWorkers = r.newGauge("kopf_active_workers",
		"Workers that are busy with a handler now: as many as the objects it is running for.", "kind", "handler")
	o.queueDepth = r.newGauge("kopf_workqueue_depth", "Objects that wait for a worker.", "kind")
	o.states = registerOrFind(r, newStates())
	if r.err != nil {
		return nil, r.err
	}
	return o, nil
}

// isDisabled reports whether nothing is measured. It is true for nil and for the zero value.
func (o *OperatorMetrics) isDisabled() bool { return o == nil || o.states == nil }

// InitializeAttempts creates the counters of attempts with these outcomes, at 0 if they do not exist. Otherwise the
// first failure in a process would create a new series, whose increase is 0 for Prometheus.
func (o *OperatorMetrics) InitializeAttempts(kind, handler, reason string, outcomes ...string) {
	if o.isDisabled() {
		return
	}
	for _, outcome := range outcomes {
		o.attempts.WithLabelValues(o.name, kind, handler, reason, outcome)
	}
}

// CountAttempt counts an attempt and records its duration. The outcome is one of success, ignored, retry, failure,
// denied, aborted. Here and below, a kind includes its group: "Database.example.org".
func (o *OperatorMetrics) CountAttempt(kind, handler, reason, outcome string, took time.Duration) {
	if o.isDisabled() {
		return
	}
	o.durations.WithLabelValues(o.name, kind, handler, reason).Observe(took.Seconds())
	o.attempts.WithLabelValues(o.name, kind, handler, reason, outcome).Inc()
}

// ObserveLatency records the latency of a change of an object of the kind, from its first event to the end of all its
// handlers.
func (o *OperatorMetrics) ObserveLatency(kind, reason string, took time.Duration) {
	if !o.isDisabled() {
		o.latencies.WithLabelValues(o.name, kind, reason).Observe(took.Seconds())
	}
}

// CountLoss counts that another client removed our annotations or finalizer from an object of the kind.
func (o *OperatorMetrics) CountLoss(kind string) {
	if !o.isDisabled() {
		o.memoryLosses.WithLabelValues(o.name, kind).Inc()
	}
}

// CountLoops counts calls of handlers whose changes to the object cause their own next call.
func (o *OperatorMetrics) CountLoops(kind string, handlers []string) {
	if o.isDisabled() {
		return
	}
	for _, handler := range handlers {
		o.loopCalls.WithLabelValues(o.name, kind, handler).Inc()
	}
}

// DroppedCounter returns a function that counts one dropped raw event of the kind.
func (o *OperatorMetrics) DroppedCounter(kind string) func() {
	if o.isDisabled() {
		return func() {}
	}
	// This creates the series with the value 0, before the first event is dropped.
	return o.droppedEvents.WithLabelValues(o.name, kind).Inc
}

// CountPosted counts a Kubernetes event by the outcome of the request that posted it.
func (o *OperatorMetrics) CountPosted(outcome string) {
	if !o.isDisabled() {
		o.postedEvents.WithLabelValues(o.name, outcome).Inc()
	}
}

// CountRepair counts a declared child of an object of the kind that the operator has repaired.
func (o *OperatorMetrics) CountRepair(kind, child string) {
	if !o.isDisabled() {
		o.repairedChildren.WithLabelValues(o.name, kind, child).Inc()
	}
}

// OccupiedGauge returns a function that adds to the number of workers of a kind that a handler occupies. It returns nil
// if nothing is measured.
func (o *OperatorMetrics) OccupiedGauge(kind string) func(handler string, more float64) {
	if o.isDisabled() {
		return nil
	}
	return func(handler string, more float64) {
		// An abandoned handler can return after the end. Its update would create the removed series again.
		if !o.ended.Load() {
			o.activeWorkers.WithLabelValues(o.name, kind, handler).Add(more)
		}
	}
}

// WaitingGauge returns a function that adds to the number of requests of a kind that wait for a worker. It returns nil
// if nothing is measured.
func (o *OperatorMetrics) WaitingGauge(kind string) func(more int) {
	if o.isDisabled() {
		return nil
	}
	gauge := o.queueDepth.WithLabelValues(o.name, kind)
	return func(more int) { gauge.Add(float64(more)) }
}

// AddSource adds a source of states. It is called at each collection of metrics until [OperatorMetrics.RemoveStates].
func (o *OperatorMetrics) AddSource(s StateSource) {
	if !o.isDisabled() {
		o.states.addSource(o, s)
	}
}

// RemoveStates removes all series that describe a state, because the state ends with the operator. Counters and
// histograms stay: their last values may not have been collected yet, and an operator of the same name continues from
// there. Only the first call has an effect.
func (o *OperatorMetrics) RemoveStates() {
	if o.isDisabled() || o.ended.Swap(true) {
		return
	}
	o.states.removeSource(o)
	own := prometheus.Labels{operatorLabel: o.name}
	o.activeWorkers.DeletePartialMatch(own)
	o.queueDepth.DeletePartialMatch(own)
}

// operatorLabel is the first label of every family. It lets several operators share one registry.
const operatorLabel = "operator"

// registrar registers the families of an operator. After the first error it registers nothing more, so that callers
// check the error once.
type registrar struct {
	registry prometheus.Registerer
	err      error
}

// withOperatorLabel returns the labels of a family, with that of the operator first.
func withOperatorLabel(labels []string) []string { return append([]string{operatorLabel}, labels...) }

// newCounter registers a family of counters with the label of the operator.
func (r *registrar) newCounter(name, help string, labels ...string) *prometheus.CounterVec {
	return registerOrFind(r, prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help},
		withOperatorLabel(labels)))
}

// newGauge registers a family of gauges with the label of the operator.
func (r *registrar) newGauge(name, help string, labels ...string) *prometheus.GaugeVec {
	return registerOrFind(r, prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help},
		withOperatorLabel(labels)))
}

// newHistogram registers a family of histograms with the label of the operator.
func (r *registrar) newHistogram(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	return registerOrFind(r, prometheus.NewHistogramVec(
		prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, withOperatorLabel(labels),
	))
}

// registerOrFind registers the collector, or returns the one that another operator of this process has registered.
// After an error, it returns the collector unregistered; [New] then discards it.
func registerOrFind[C prometheus.Collector](r *registrar, collector C) C {
	if r.err != nil {
		return collector
	}
	err := r.registry.Register(collector)
	var already prometheus.AlreadyRegisteredError
	if errors.As(err, &already) {
		// A collector of another Go type is foreign, although its descriptions are equal. It is an error.
		if existing, ok := already.ExistingCollector.(C); ok {
			return existing
		}
	}
	if err != nil {
		r.err = fmt.Errorf("registering the metrics of an operator: %w", err)
	}
	return collector
}
