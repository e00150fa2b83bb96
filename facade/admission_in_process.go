package kopf

import (
	"context"
)

// serveInProcess has the handlers of admission served by the webhooks of package facadetest, if there are any: without
// a port, a certificate or configurations in the cluster. A Server of the settings stays.
func (op *Operator) serveInProcess(own *AdmissionSettings) {
	switch {
	case op.inProcess == nil:
	case own.Server == op.inProcess.Server: // settled before
	case own.Server != nil || !own.FinalizerOnCreate && !op.registry.Admits() || !op.inProcess.Attach():
		op.inProcess = nil
	default:
		*own = AdmissionSettings{
			Server: op.inProcess.Server, FinalizerOnCreate: own.FinalizerOnCreate,
			ExcludedNamespaces: own.ExcludedNamespaces, WithoutMatchConditions: true,
		}
	}
}

// awaitReviews waits until handlers of admission can be called in the process. It returns false if the operator ends
// before.
func (op *Operator) awaitReviews(ctx context.Context) bool {
	if op.inProcess == nil || !op.reviews {
		return true
	}
	select {
	case <-op.inProcess.Announced:
		return true
	case <-ctx.Done():
		return false
	}
}
