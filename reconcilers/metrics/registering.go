package metrics

import (
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

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
	return registerOrFind(r, prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, withOperatorLabel(labels)))
}

// newGauge registers a family of gauges with the label of the operator.
func (r *registrar) newGauge(name, help string, labels ...string) *prometheus.GaugeVec {
	return registerOrFind(r, prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, withOperatorLabel(labels)))
}

// newHistogram registers a family of histograms with the label of the operator.
func (r *registrar) newHistogram(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	return registerOrFind(r, prometheus.NewHistogramVec(
		prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, withOperatorLabel(labels),
	))
}

// registerOrFind registers the collector, or returns the one that another operator of this process has registered. After an
// error, it returns the collector unregistered; [New] then discards it.
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
