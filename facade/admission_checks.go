package kopf

import (
	"fmt"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/registry"
	"github.com/kopf-runtime/kopf-runtime/reconcilers"
)

// checkAdmissionServer tells whether handlers of admission can be served here.
func (op *Operator) checkAdmissionServer(plan []reconcilers.Registration) error {
	var wrong registry.SetupErrors
	if len(watching(plan)) < len(plan) {
		if err := op.settings.values.Admission.checkServer(op.started); err != nil {
			wrong.Add(op.registry.Location, fmt.Errorf("%s: %w", op.settingsSource(), err))
		}
	}
	return wrong.Report(op.name)
}
