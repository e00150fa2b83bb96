package metrics

import (
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Operator is what one operator measures. It may be used concurrently. The zero value and nil measure nothing.
type Operator struct {
	name  string
	ended atomic.Bool

	attempts, dropped, lost, looped, posted, repaired, requests *prometheus.CounterVec
	durations, latencies                                        *prometheus.HistogramVec
	occupied, queued                                            *prometheus.GaugeVec
	states                                                      *states
}

// latencyBuckets are in seconds. Changes that handlers have to repeat take minutes and hours.
var latencyBuckets = []float64{.01, .05, .1, .5, 1, 5, 10, 30, 60, 300, 900, 3600}

// New registers, or finds, the families that all operators of the registry share. The name is the value of the label
// "operator". It is an error if the registry refuses a family, such as for one of the same name that is not ours.
func New(name string, registry prometheus.Registerer) (*Operator, error) {
	r := &registrar{registry: registry}
	o := &Operator{name: name}
	o.attempts = r.counter("kopf_handler_attempts_total",
		"Calls of handlers by what came of them.", "kind", "handler", "reason", "outcome")
	o.durations = r.histogram("kopf_handler_duration_seconds",
		"How long the calls of handlers took.", prometheus.DefBuckets, "kind", "handler", "reason")
	o.latencies = r.histogram("kopf_change_latency_seconds",
		"From a change to the end of all its handlers, retries included.", latencyBuckets, "kind", "reason")
	o.dropped = r.counter("kopf_events_dropped_total",
		"Raw events that no handler has seen, because too many were waiting.", "kind")
	o.lost = r.counter("kopf_memory_losses_total",
		"Times that another client was found to have removed the annotations or the finalizer of an object.", "kind")
	o.looped = r.counter("kopf_handler_loops_total",
		"Calls that have changed the object, by which the handler is called again and again, and delayed.",
		"kind", "handler")
	o.posted = r.counter("kopf_posted_events_total",
		"Kubernetes events that handlers have posted, by what came of them.", "outcome")
	o.repaired = r.counter("kopf_children_repaired_total",
		"Declared children that were changed or deleted, and are back.", "kind", "child")
	o.requests = r.counter("kopf_api_requests_total",
		"Requests of the framework to the API server, each attempt of its own.", "verb", "code")
	o.occupied = r.gauge("kopf_active_workers",
		"Workers that are busy with a handler now: as many as the objects it is running for.", "kind", "handler")
	o.queued = r.gauge("kopf_workqueue_depth", "Objects that wait for a worker.", "kind")
	o.states = registered(r, newStates())
	if r.err != nil {
		return nil, r.err
	}
	return o, nil
}

// off tells whether nothing is measured, or not any more.
func (o *Operator) off() bool { return o == nil || o.states == nil }

// Expect has the counters of attempts exist with these outcomes, with 0 if none of them was counted yet.
func (o *Operator) Expect(kind, handler, reason string, outcomes ...string) {
	if o.off() {
		return
	}
	for _, outcome := range outcomes {
		o.attempts.WithLabelValues(o.name, kind, handler, reason, outcome)
	}
}

// Attempted counts and times an attempt. The outcome is one of success, ignored, retry, failure, denied, aborted. Here
// and below, a kind has its group: "Database.example.org".
func (o *Operator) Attempted(kind, handler, reason, outcome string, took time.Duration) {
	if o.off() {
		return
	}
	o.durations.WithLabelValues(o.name, kind, handler, reason).Observe(took.Seconds())
	o.attempts.WithLabelValues(o.name, kind, handler, reason, outcome).Inc()
}

// Handled times a change of an object of the kind, from when it was seen to the end of all its handlers.
func (o *Operator) Handled(kind, reason string, took time.Duration) {
	if !o.off() {
		o.latencies.WithLabelValues(o.name, kind, reason).Observe(took.Seconds())
	}
}

// Lost counts that another client has removed what is remembered on an object of the kind.
func (o *Operator) Lost(kind string) {
	if !o.off() {
		o.lost.WithLabelValues(o.name, kind).Inc()
	}
}

// Looped counts the calls of handlers that call themselves again and again by their changes to an object.
func (o *Operator) Looped(kind string, handlers []string) {
	if o.off() {
		return
	}
	for _, handler := range handlers {
		o.looped.WithLabelValues(o.name, kind, handler).Inc()
	}
}

// Dropped gives what counts a raw event of the kind that was dropped.
func (o *Operator) Dropped(kind string) func() {
	if o.off() {
		return func() {}
	}
	return o.dropped.WithLabelValues(o.name, kind).Inc
}

// Posted counts a Kubernetes event by what came of it.
func (o *Operator) Posted(outcome string) {
	if !o.off() {
		o.posted.WithLabelValues(o.name, outcome).Inc()
	}
}

// Repaired counts a declared child of an object of the kind that is back.
func (o *Operator) Repaired(kind, child string) {
	if !o.off() {
		o.repaired.WithLabelValues(o.name, kind, child).Inc()
	}
}

// Occupied gives what counts the places of a kind that a handler holds; nil if nothing is measured.
func (o *Operator) Occupied(kind string) func(handler string, more float64) {
	if o.off() {
		return nil
	}
	return func(handler string, more float64) {
		if !o.ended.Load() { // a handler that was abandoned may still end
			o.occupied.WithLabelValues(o.name, kind, handler).Add(more)
		}
	}
}

// Waiting gives what counts the requests of a kind that wait for a place; nil if nothing is measured.
func (o *Operator) Waiting(kind string) func(more int) {
	if o.off() {
		return nil
	}
	gauge := o.queued.WithLabelValues(o.name, kind)
	return func(more int) { gauge.Add(float64(more)) }
}

// Show has the source asked for the present states whenever metrics are collected, until End.
func (o *Operator) Show(s Source) {
	if !o.off() {
		o.states.add(o, s)
	}
}

// End takes back all that is a state: it is over with the operator. What was counted stays, as the last of it may not
// have been collected yet; an operator of the same name goes on from there.
func (o *Operator) End() {
	if o.off() || o.ended.Swap(true) {
		return
	}
	o.states.remove(o)
	own := prometheus.Labels{operatorLabel: o.name}
	o.occupied.DeletePartialMatch(own)
	o.queued.DeletePartialMatch(own)
}
