package kopf

import (
	"fmt"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/registry"
)

// Conditions maintains the conditions Ready, Reconciling and Stalled, and status.observedGeneration, of the selected
// objects from the outcomes of their handlers of changes, so that kubectl wait --for=condition=Ready works. Kopf: none.
//
// The kind needs the status subresource with a list of metav1.Condition. Otherwise one line is logged, and nothing is
// written. See docs/conditions.md.
func (s Selection[T]) Conditions() {
	if s.kind == nil {
		registry.AddOwnerless(errNoSelection("Conditions"))
		return
	}
	if s.kind.Find == nil {
		return // the error is already recorded
	}
	h := registry.NewReporter(registry.Location(), s.filters)
	s.kind.Registry.Register(registry.HandlerEntry{Kind: s.kind, Verb: "Conditions", Handler: h})
}

func errNoSelection(verb string) error {
	return fmt.Errorf("%s: the selection is empty: make it with kopf.For or kopf.ForResource", verb)
}
