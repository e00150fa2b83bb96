package kopf

import "github.com/kopf-runtime/kopf-runtime/reconcilers/metrics"

// repairs gives what counts children that are back. Without the metric, nothing is counted: the engine has the same
// ones, and tells why.
func (op *Operator) repairs() func(parent, child string) {
	measured, err := metrics.New(op.name, op.metricsRegistry())
	if err != nil {
		return nil
	}
	return measured.Repaired
}
