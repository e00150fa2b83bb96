package kopf

import (
	"fmt"
	"slices"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/conditions"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/discovery"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
)

// Conditions maintains the conditions Ready, Reconciling and Stalled, and status.observedGeneration, of the selected
// objects from the outcomes of their handlers of changes, so that kubectl wait --for=condition=Ready works. Kopf: none.
//
// The kind needs the status subresource with a list of metav1.Condition. Otherwise one line is logged, and nothing is
// written. See docs/conditions.md.
func (s Selection[T]) Conditions() {
	if s.kind == nil {
		addOwnerless(errNoSelection("Conditions"))
		return
	}
	if s.kind.find == nil {
		return // the error is already recorded
	}
	h := newReporter(location(), s.filters)
	s.kind.op.register(registration{kind: s.kind, verb: "Conditions", handler: h})
}

func errNoSelection(verb string) error {
	return fmt.Errorf("%s: the selection is empty: make it with kopf.For or kopf.ForResource", verb)
}

// reportsID is in lines of the log that list handlers.
const reportsID = "conditions"

// newReporter returns a handler that is never called. It selects the objects that have conditions.
func newReporter(where string, filters []handlers.Filter) *handlers.Handler {
	return &handlers.Handler{
		ID: reportsID, Family: handlers.Reporting, Filters: filters, Function: reportsID, Location: where,
	}
}

// reports is true for handlers of newReporter.
func reports(h *handlers.Handler) bool { return h.Family == handlers.Reporting }

// reporters returns those by the settings: an object has conditions if one of its handlers selects it.
func (op *Operator) reporters(all []resolved) (more []resolved) {
	if !op.settings.values.Conditions {
		return nil
	}
	whole := map[discovery.Selector]bool{}
	for _, one := range all {
		family := one.handler.Family
		counts := family == handlers.Changing || family == handlers.Spawning || family == handlers.Watching
		if !counts || whole[one.selector] {
			continue
		}
		whole[one.selector] = len(one.handler.Filters) == 0
		h := newReporter(one.handler.Location, one.handler.Filters)
		more = append(more, resolved{registration{kind: one.kind, verb: "Conditions", handler: h}, one.selector})
	}
	return more
}

// reserveConditions reserves the types of the conditions, so that handlers of the same objects cannot set them.
func (op *Operator) reserveConditions(all []resolved) {
	for _, one := range all {
		told := func(other resolved) bool { return reports(other.handler) && one.selector.MayMean(other.selector) }
		if one.handler.Reserved = nil; slices.ContainsFunc(all, told) {
			one.handler.Reserved = op.settings.conditions.All()
		}
	}
}

// resolveConditions makes the types of the domain.
func (s *resolvedSettings) resolveConditions() (problems []error) {
	types, err := conditions.Named(s.values.ConditionsDomain)
	if err != nil {
		problems = append(problems, fmt.Errorf("ConditionsDomain: %w", err))
	}
	s.conditions = types
	return problems
}
