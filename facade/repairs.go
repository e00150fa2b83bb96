package facade

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
)

// repairs registers, or finds, the metric kopf_children_repaired_total{operator,kind,child}, and gives what counts in
// it. Without the metric, nothing is counted.
func (op *Operator) repairs() func(parent, child string) {
	counter := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "kopf_children_repaired_total", Help: "Declared children that were changed or deleted, and are back.",
	}, []string{"operator", "kind", "child"})
	var already prometheus.AlreadyRegisteredError
	if err := op.registry().Register(counter); errors.As(err, &already) {
		existing, ok := already.ExistingCollector.(*prometheus.CounterVec)
		if !ok {
			return nil
		}
		counter = existing
	}
	return func(parent, child string) { counter.WithLabelValues(op.name, parent, child).Inc() }
}
