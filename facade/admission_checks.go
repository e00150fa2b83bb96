package kopf

import (
	"fmt"

	"github.com/kopf-runtime/kopf-runtime/reconcilers"
)

// checkAdmission tells whether the requests for a handler of admission could be taken for those of one before it.
func (op *Operator) checkAdmission(one resolved, before []resolved) error {
	id := one.handler.ID
	for _, other := range before {
		if !admits(other.handler) || other.verb != one.verb || other.handler.ID != id {
			continue
		}
		if other.handler.Twin(one.handler) {
			continue
		}
		if one.selector.MayMean(other.selector) {
			return idTaken(one, other)
		}
		if op.given.Persistence.KopfFormats {
			return fmt.Errorf("%s(%q): the id is taken for another kind at %s: with kopf.AsKopf, both would be served "+
				"at one path; choose another one", one.verb, id, other.handler.Location)
		}
	}
	return nil
}

// checkAdmissionServer tells whether handlers of admission can be served here.
func (op *Operator) checkAdmissionServer(plan []reconcilers.Registration) error {
	var wrong setupErrors
	if len(watching(plan)) < len(plan) {
		if err := op.settings.values.Admission.checkServer(op.started); err != nil {
			wrong.add(op.location, fmt.Errorf("%s: %w", op.settingsSource(), err))
		}
	}
	return wrong.report(op.name)
}
