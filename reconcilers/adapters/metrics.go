package adapters

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
)

// Metrics counts and times the attempts of one operator. The zero value and nil measure nothing.
type Metrics struct {
	operator string
	attempts *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	dropped  *prometheus.CounterVec
	occupied *prometheus.GaugeVec
	waiting  *prometheus.GaugeVec
}

// NewMetrics registers, or finds, the metrics shared by all operators of the process:
// kopf_handler_attempts_total{operator,kind,handler,reason,outcome},
// kopf_handler_duration_seconds{operator,kind,handler,reason}, and kopf_events_dropped_total{operator,kind}. The
// outcome is one of success, ignored, retry, failure, aborted. All sub-handlers of a registered handler, however deep,
// are counted together as the handler "<id>/*".
func NewMetrics(operator string, registry prometheus.Registerer) (*Metrics, error) {
	m := &Metrics{operator: operator}
	attempts, err := register(registry, prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "kopf_handler_attempts_total", Help: "Calls of handlers by what came of them.",
	}, []string{"operator", "kind", "handler", "reason", "outcome"}))
	if err != nil {
		return nil, err
	}
	seconds, err := register(registry, prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "kopf_handler_duration_seconds", Help: "How long the calls of handlers took.",
	}, []string{"operator", "kind", "handler", "reason"}))
	if err != nil {
		return nil, err
	}
	dropped, err := register(registry, prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "kopf_events_dropped_total", Help: "Raw events that no handler has seen, because too many were waiting.",
	}, []string{"operator", "kind"}))
	if err != nil {
		return nil, err
	}
	m.attempts, m.seconds, m.dropped = attempts, seconds, dropped
	return m, m.registerPlaces(registry)
}

// Dropped gives what counts a raw event of the kind that was dropped.
func (m *Metrics) Dropped(kind string) func() {
	if m == nil || m.dropped == nil {
		return func() {}
	}
	return m.dropped.WithLabelValues(m.operator, kind).Inc
}

// register finds what another operator of this process has registered already.
func register[C prometheus.Collector](registry prometheus.Registerer, collector C) (C, error) {
	err := registry.Register(collector)
	var already prometheus.AlreadyRegisteredError
	if errors.As(err, &already) {
		if existing, ok := already.ExistingCollector.(C); ok {
			return existing, nil
		}
	}
	if err != nil {
		return collector, fmt.Errorf("registering the metrics of handlers: %w", err)
	}
	return collector, nil
}

// measured is for operators that measure anything.
func measured(h *Handler) Adapter {
	if h.metrics == nil || h.metrics.attempts == nil {
		return nil
	}
	return h.metrics.Adapter
}

// Adapter measures the attempts.
func (m *Metrics) Adapter(next Reconciler) Reconciler {
	if m == nil || m.attempts == nil {
		return next
	}
	return Func(func(ctx context.Context, a *execution.Attempt) (reconcile.Result, error) {
		started := a.Now()
		result, err := next.Reconcile(ctx, a)
		contained(ctx, func() { m.measure(a, a.Now().Sub(started)) })
		return result, err
	})
}

func (m *Metrics) measure(a *execution.Attempt, took time.Duration) {
	kind, _ := a.Call.Cause.Body["kind"].(string)
	labels := []string{m.operator, kind, handlerLabel(a.Call.Handler), string(a.Call.Cause.Reason)}
	m.seconds.WithLabelValues(labels...).Observe(took.Seconds())
	m.attempts.WithLabelValues(append(labels, outcomeLabel(a.Outcome))...).Inc()
}

// handlerLabel has as many values as there are registrations, twice: how many sub-handlers there are, and under which
// ids, may be up to the object, and a series stays until the end of the process.
func handlerLabel(h *handlers.Handler) string {
	if h.Root != "" {
		return handlers.SubID(h.Root, "*")
	}
	return h.ID
}

func outcomeLabel(o execution.Outcome) string {
	switch {
	case o.Aborted:
		return "aborted"
	case o.Ignored != nil:
		return "ignored"
	case o.Final && o.Err == nil:
		return "success"
	case o.Final:
		return "failure"
	default:
		return "retry"
	}
}
