package kopf

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/codec"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/persistence"
	"github.com/kopf-runtime/kopf-runtime/reconcilers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/discovery"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

// registration is one handler of one kind of objects, before the kind is resolved.
type registration struct {
	kind    *kind
	verb    string // what the id is unique under, together with the kind
	handler *handlers.Handler
	// child is the Go type of the children that Owns was called for.
	child reflect.Type
	// onlyEnsured has an owning handler watch only children that Ensure has declared.
	onlyEnsured bool
}

// admits tells whether the handler is one of admission: it keeps nothing on objects, and needs none.
func admits(h *handlers.Handler) bool { return h.Family == handlers.Admitting }

// keepsNothing tells whether the handler is one that is called for children, or never: it has no record.
func keepsNothing(h *handlers.Handler) bool { return h.Owned != nil }

// resolved is a registration whose kind is known.
type resolved struct {
	registration
	selector discovery.Selector
}

// plan resolves all kinds by the scheme, and checks what it can only check then. It reports all errors at once.
func (op *Operator) plan(scheme *runtime.Scheme) ([]reconcilers.Registration, error) {
	found := slices.Concat(op.errs, op.settle(scheme), takeOwnerless())
	op.observe()
	op.demandLabels()
	all, unknown := op.resolve(scheme)
	found = append(append(found, unknown...), op.checkIgnored()...)
	all = append(all, op.setsFinalizers(all)...)
	all = append(all, op.reporters(all)...)
	op.reserveConditions(all)
	for i, one := range all {
		if err := op.checkOne(one, all[:i]); err != nil {
			found.add(one.handler.Location, err)
		}
	}
	if err := found.report(op.name); err != nil {
		return nil, err
	}
	op.shareFormerIDs(all)
	plan := make([]reconcilers.Registration, 0, len(all))
	for _, one := range all {
		h := op.withOperations(one.handler)
		plan = append(plan, reconcilers.Registration{Selector: one.selector, Handler: h})
	}
	return plan, nil
}

// resolve finds the kinds, each once: a type that is not known is one error, however many handlers it has.
func (op *Operator) resolve(scheme *runtime.Scheme) (all []resolved, unknown setupErrors) {
	selectors := map[*kind]discovery.Selector{}
	failed := map[*kind]bool{}
	for _, r := range op.registrations {
		selector, done := selectors[r.kind]
		if !done && !failed[r.kind] {
			var err error
			if selector, err = r.kind.find(scheme); err != nil {
				failed[r.kind] = true
				unknown.add(r.kind.location, err)
			}
			selectors[r.kind] = selector
		}
		if !failed[r.kind] {
			all = append(all, resolved{r, selector})
		}
	}
	return all, unknown
}

// checkOne tells what is wrong with a registration whose kind is known, in view of those before it.
func (op *Operator) checkOne(one resolved, before []resolved) error {
	switch {
	case admits(one.handler):
		return op.checkAdmission(one, before)
	case keepsNothing(one.handler), reports(one.handler):
		return cmp.Or(op.checkConflict(one, before), op.checkFormerIDs(one, before))
	}
	return cmp.Or(
		op.checkConflict(one, before), op.checkRecordPlace(one, one.handler.ID), op.checkFormerIDs(one, before),
	)
}

// checkConflict tells whether a handler could be taken for one of those before it: the operator keeps their progress
// under their ids.
func (op *Operator) checkConflict(one resolved, before []resolved) error {
	id := one.handler.ID
	for _, other := range before {
		switch taken := other.handler; {
		case admits(taken), !one.selector.MayMean(other.selector):
		case one.selector.Contradicts(other.selector):
			return fmt.Errorf("%s(%q): the kind is selected as %s here, and as %s by %s(%q) at %s: they are the "+
				"same objects; choose one version",
				one.verb, id, one.selector, other.selector, other.verb, taken.ID, taken.Location)
		case reports(taken), reports(one.handler):
		case other.verb == one.verb && taken.Twin(one.handler):
		case taken.ID == id &&
			(other.verb == one.verb || one.handler.Family == handlers.Spawning && taken.Family == handlers.Spawning):
			return idTaken(one, other)
		case keepsNothing(taken), keepsNothing(one.handler):
		case taken.ID != id && persistence.SharePlace(op.settings.values.Persistence.ProgressStorage, taken.ID, id):
			return fmt.Errorf("%s(%q): the id has the same annotation as %q of %s at %s; change one of them",
				one.verb, id, taken.ID, other.verb, taken.Location)
		}
	}
	return nil
}

// idTaken is the error for two functions under one id. One function under one id may be registered for several
// selections: it is called once.
func idTaken(one, other resolved) error {
	return fmt.Errorf("%s(%q): the id is taken by %s at %s for another function; give this one its own id, or "+
		"register one function value under both selections",
		one.verb, one.handler.ID, other.verb, other.handler.Location)
}

// checkIgnored tells which of the ignored fields no kind of the operator has: with a slip in its path, a field would
// not be ignored at all.
func (op *Operator) checkIgnored() (wrong setupErrors) {
	for _, text := range op.given.Persistence.IgnoredFields {
		path, err := codec.ParsePath(text)
		if err != nil {
			continue // it is told with the other settings
		}
		if missing := op.missing(path); len(missing) > 0 {
			wrong.add(op.location, fmt.Errorf("kopf.New: Persistence.IgnoredFields: %w", errors.Join(missing...)))
		}
	}
	return wrong
}

// missing tells for each kind that it does not have the field; nothing if any of them has it.
func (op *Operator) missing(field diff.Path) (missing []error) {
	told := map[string]bool{}
	for _, r := range op.registrations {
		err := r.kind.checkField(field)
		if err == nil {
			return nil
		}
		if text := err.Error(); !told[text] {
			told[text], missing = true, append(missing, err)
		}
	}
	return missing
}

// checkRecordPlace returns an error if a handler's record under the id would overwrite other state of the operator on
// objects.
func (op *Operator) checkRecordPlace(one resolved, id string) error {
	places, err := persistence.RecordPlaces(op.settings.values.Persistence.ProgressStorage, id)
	if err != nil {
		return fmt.Errorf("%s(%q): %w", one.verb, id, err)
	}
	taken, err := op.engineOptions(nil).Places()
	if err != nil {
		return fmt.Errorf("%s(%q): asking the storages for their places: %w", one.verb, id, err)
	}
	for _, place := range places {
		if slices.Contains(taken, place) {
			return fmt.Errorf(
				"%s(%q): the record would be at %s, which the operator needs for itself; choose another id", one.verb,
				id, place,
			)
		}
	}
	return nil
}
