package kopf

import (
	"fmt"
	"slices"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/conditions"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/discovery"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
)

// Conditions has the selected objects tell in their status how their handlers of changes are getting on, so that others
// can wait for them: kubectl wait --for=condition=Ready. No handler has to do anything for it. Kopf: none.
//
// # Flow
//
// There are Ready, which is True when the handlers of the last change have succeeded; Reconciling, which is there, and
// True, while a handler is retried; and Stalled, which is there, and True, when one has failed for good. They and
// status.observedGeneration say which generation of the object this is about. docs/conditions.md has the whole table.
// They are written with the outcomes of the handlers at the end of a pass over the object, with what the handlers have
// set in the status, by one request at most; if nothing has changed, by none. No handler is called for them, not even
// one of the field status.conditions. What daemons, timers and handlers of events do is not told: see [Task.Condition].
//
// # Assumptions
//
// The status is a subresource, and has the list status.conditions in the schema, with the fields of
// metav1.Condition. Of a kind where that is not so, one line in the log tells what to add to its CRD, and nothing is
// written to it; nor is anything to Kubernetes' own kinds but Services and PodDisruptionBudgets.
func (s Selection[T]) Conditions() {
	if s.kind == nil {
		addOwnerless(errNoSelection("Conditions"))
		return
	}
	if s.kind.find == nil {
		return // it is told
	}
	h := newReporter(location(), s.filters)
	s.kind.op.register(registration{kind: s.kind, verb: "Conditions", handler: h})
}

func errNoSelection(verb string) error {
	return fmt.Errorf("%s: the selection is empty: make it with kopf.For or kopf.ForResource", verb)
}

// reportsID is in lines of the log that list handlers.
const reportsID = "conditions"

// newReporter makes a handler that is never called: it says which objects tell of the others.
func newReporter(where string, filters []handlers.Filter) *handlers.Handler {
	return &handlers.Handler{
		ID: reportsID, Family: handlers.Reporting, Filters: filters, Function: reportsID, Location: where,
	}
}

// reports tells whether the handler is such a one.
func reports(h *handlers.Handler) bool { return h.Family == handlers.Reporting }

// reporters are those by the settings: an object tells of its handlers if one of them selects it.
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

// reserveConditions keeps the types of the conditions from handlers of the same objects.
func (op *Operator) reserveConditions(all []resolved) {
	for _, one := range all {
		told := func(other resolved) bool { return reports(other.handler) && one.selector.MayMean(other.selector) }
		if one.handler.Reserved = nil; slices.ContainsFunc(all, told) {
			one.handler.Reserved = op.settings.conditions.All()
		}
	}
}

// resolveConditions makes the types of the domain.
func (s *settings) resolveConditions() (problems []error) {
	types, err := conditions.Named(s.values.ConditionsDomain)
	if err != nil {
		problems = append(problems, fmt.Errorf("ConditionsDomain: %w", err))
	}
	s.conditions = types
	return problems
}
