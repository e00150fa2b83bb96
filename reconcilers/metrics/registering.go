package metrics

import (
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

// operatorLabel is the first label of every family.
const operatorLabel = "operator"

// registrar registers the families of an operator, up to the first error.
type registrar struct {
	registry prometheus.Registerer
	err      error
}

func labeled(labels []string) []string { return append([]string{operatorLabel}, labels...) }

func (r *registrar) counter(name, help string, labels ...string) *prometheus.CounterVec {
	return registered(r, prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labeled(labels)))
}

func (r *registrar) gauge(name, help string, labels ...string) *prometheus.GaugeVec {
	return registered(r, prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labeled(labels)))
}

func (r *registrar) histogram(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	return registered(r, prometheus.NewHistogramVec(
		prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labeled(labels),
	))
}

// registered registers the collector, or finds what another operator of this process has registered already.
func registered[C prometheus.Collector](r *registrar, collector C) C {
	if r.err != nil {
		return collector
	}
	err := r.registry.Register(collector)
	var already prometheus.AlreadyRegisteredError
	if errors.As(err, &already) {
		if existing, ok := already.ExistingCollector.(C); ok {
			return existing
		}
	}
	if err != nil {
		r.err = fmt.Errorf("registering the metrics of an operator: %w", err)
	}
	return collector
}
