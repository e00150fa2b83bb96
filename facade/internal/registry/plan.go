package registry

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/codec"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/defaults"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/discovery"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/storages"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

// PlanRules are the settings for further handlers of the operator, and for mistakes.
type PlanRules struct {
	// KopfFormats is true with AsKopf.
	KopfFormats bool
	// IgnoredFields are those of the settings, as the user has written them.
	IgnoredFields []string
	// Progress has the records of handlers. Places are those that the operator needs for itself.
	Progress progress.Storage
	Places   func() ([]string, error)
	// Conditions makes all handlers report by conditions. ConditionTypes are the types of these.
	Conditions     bool
	ConditionTypes []string
	// Add returns further handlers, of the operator itself; nil adds none.
	Add func(all []ResolvedEntry) []ResolvedEntry
}

// Plan resolves all kinds by the scheme, and then checks the handlers. It returns all errors at once. The operator
// holds the lock.
func (r *HandlerRegistry) Plan(scheme *runtime.Scheme, rules PlanRules) (all []ResolvedEntry, wrong SetupErrors) {
	all, wrong = r.resolve(scheme)
	wrong = append(wrong, r.checkIgnored(rules.IgnoredFields)...)
	if rules.Add != nil {
		all = append(all, rules.Add(all)...)
	}
	if rules.Conditions {
		all = append(all, reporters(all)...)
	}
	reserveConditions(all, rules.ConditionTypes)
	for i, one := range all {
		if err := rules.check(one, all[:i]); err != nil {
			wrong.Add(one.Handler.Location, err)
		}
	}
	return all, wrong
}

// resolve finds the kinds, each once: a type that is not known is one error, however many handlers it has.
func (r *HandlerRegistry) resolve(scheme *runtime.Scheme) (all []ResolvedEntry, unknown SetupErrors) {
	selectors := map[*SelectedKind]discovery.Selector{}
	failed := map[*SelectedKind]bool{}
	for _, e := range r.Entries {
		selector, done := selectors[e.Kind]
		if !done && !failed[e.Kind] {
			var err error
			if selector, err = e.Kind.Find(scheme); err != nil {
				failed[e.Kind] = true
				unknown.Add(e.Kind.Location, err)
			}
			selectors[e.Kind] = selector
		}
		if !failed[e.Kind] {
			all = append(all, ResolvedEntry{e, selector})
		}
	}
	return all, unknown
}

// check returns the mistake of an entry, in view of those before it.
func (r PlanRules) check(one ResolvedEntry, before []ResolvedEntry) error {
	switch {
	case Admits(one.Handler):
		return r.checkAdmission(one, before)
	case keepsNothing(one.Handler), Reports(one.Handler):
		return cmp.Or(r.checkConflict(one, before), r.checkFormerIDs(one, before))
	}
	return cmp.Or(
		r.checkConflict(one, before), r.checkRecordPlace(one, one.Handler.ID), r.checkFormerIDs(one, before),
	)
}

// checkConflict returns an error if a handler could be taken for one of those before it: the operator keeps their
// progress under their ids.
func (r PlanRules) checkConflict(one ResolvedEntry, before []ResolvedEntry) error {
	id := one.Handler.ID
	for _, other := range before {
		switch taken := other.Handler; {
		case Admits(taken), !one.Selector.MayMean(other.Selector):
		case one.Selector.Contradicts(other.Selector):
			return fmt.Errorf("%s(%q): the kind is selected as %s here, and as %s by %s(%q) at %s: they are the "+
				"same objects; choose one version",
				one.Verb, id, one.Selector, other.Selector, other.Verb, taken.ID, taken.Location)
		case Reports(taken), Reports(one.Handler):
		case other.Verb == one.Verb && taken.Twin(one.Handler):
		case taken.ID == id &&
			(other.Verb == one.Verb || one.Handler.Family == handlers.Spawning && taken.Family == handlers.Spawning):
			return idTaken(one, other)
		case keepsNothing(taken), keepsNothing(one.Handler):
		case taken.ID != id && defaults.SharePlace(r.Progress, taken.ID, id):
			return fmt.Errorf("%s(%q): the id has the same annotation as %q of %s at %s; change one of them",
				one.Verb, id, taken.ID, other.Verb, taken.Location)
		}
	}
	return nil
}

// checkAdmission returns an error if requests for an admission handler could be taken for those of one before it.
func (r PlanRules) checkAdmission(one ResolvedEntry, before []ResolvedEntry) error {
	id := one.Handler.ID
	for _, other := range before {
		if !Admits(other.Handler) || other.Verb != one.Verb || other.Handler.ID != id {
			continue
		}
		if other.Handler.Twin(one.Handler) {
			continue
		}
		if one.Selector.MayMean(other.Selector) {
			return idTaken(one, other)
		}
		if r.KopfFormats {
			return fmt.Errorf("%s(%q): the id is taken for another kind at %s: with kopf.AsKopf, both would be served "+
				"at one path; choose another one", one.Verb, id, other.Handler.Location)
		}
	}
	return nil
}

// idTaken is the error for two functions under one id. One function under one id may be registered for several
// selections: it is called once.
func idTaken(one, other ResolvedEntry) error {
	return fmt.Errorf("%s(%q): the id is taken by %s at %s for another function; give this one its own id, or "+
		"register one function value under both selections",
		one.Verb, one.Handler.ID, other.Verb, other.Handler.Location)
}

// checkIgnored returns errors for ignored fields that none of the kinds has: with a slip in its path, a field would
// not be ignored at all.
func (r *HandlerRegistry) checkIgnored(fields []string) (wrong SetupErrors) {
	for _, text := range fields {
		path, err := codec.ParsePath(text)
		if err != nil {
			continue // it is reported with the other settings
		}
		if missing := r.missing(path); len(missing) > 0 {
			wrong.Add(r.Location, fmt.Errorf("kopf.New: Persistence.IgnoredFields: %w", errors.Join(missing...)))
		}
	}
	return wrong
}

// missing returns an error for each kind without the field; nothing if any of them has it.
func (r *HandlerRegistry) missing(field diff.Path) (missing []error) {
	told := map[string]bool{}
	for _, e := range r.Entries {
		err := e.Kind.CheckField(field)
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
func (r PlanRules) checkRecordPlace(one ResolvedEntry, id string) error {
	places, err := defaults.RecordPlaces(r.Progress, id)
	if err != nil {
		return fmt.Errorf("%s(%q): %w", one.Verb, id, err)
	}
	taken, err := r.Places()
	if err != nil {
		return fmt.Errorf("%s(%q): asking the storages for their places: %w", one.Verb, id, err)
	}
	for _, place := range places {
		if slices.Contains(taken, place) {
			return fmt.Errorf(
				"%s(%q): the record would be at %s, which the operator needs for itself; choose another id", one.Verb,
				id, place,
			)
		}
	}
	return nil
}

// reportsID is in lines of the log that list handlers.
const reportsID = "conditions"

// NewReporter returns a handler that is never called. It selects the objects that have conditions.
func NewReporter(where string, filters []handlers.Filter) *handlers.Handler {
	return &handlers.Handler{
		ID: reportsID, Family: handlers.Reporting, Filters: filters, Function: reportsID, Location: where,
	}
}

// reporters returns those by the settings: an object has conditions if one of its handlers selects it.
func reporters(all []ResolvedEntry) (more []ResolvedEntry) {
	whole := map[discovery.Selector]bool{}
	for _, one := range all {
		family := one.Handler.Family
		counts := family == handlers.Changing || family == handlers.Spawning || family == handlers.Watching
		if !counts || whole[one.Selector] {
			continue
		}
		whole[one.Selector] = len(one.Handler.Filters) == 0
		h := NewReporter(one.Handler.Location, one.Handler.Filters)
		more = append(more, ResolvedEntry{HandlerEntry{Kind: one.Kind, Verb: "Conditions", Handler: h}, one.Selector})
	}
	return more
}

// reserveConditions reserves the types of the conditions, so that handlers of the same objects cannot set them.
func reserveConditions(all []ResolvedEntry, types []string) {
	for _, one := range all {
		reported := func(other ResolvedEntry) bool {
			return Reports(other.Handler) && one.Selector.MayMean(other.Selector)
		}
		if one.Handler.Reserved = nil; slices.ContainsFunc(all, reported) {
			one.Handler.Reserved = types
		}
	}
}

// checkFormerIDs returns an error if a former id of the handler, or of one before it, belongs to another handler.
func (r PlanRules) checkFormerIDs(one ResolvedEntry, before []ResolvedEntry) error {
	h := one.Handler
	if slices.Contains(h.FormerIDs, h.ID) {
		return fmt.Errorf("%s(%q): FormerIDs(%q): this is the present id", one.Verb, h.ID, h.ID)
	}
	for _, id := range h.FormerIDs {
		if err := r.checkRecordPlace(one, id); err != nil {
			return err
		}
	}
	for _, other := range before {
		haveResults := h.HasResult() && other.Handler.HasResult()
		if !haveResults || !one.Selector.MayMean(other.Selector) || other.Handler.ID == h.ID {
			continue
		}
		if id, taken := r.shared(h.FormerIDs, other.Handler.ID); taken {
			return formerIDTaken(one, id, other)
		}
		if id, taken := r.shared(other.Handler.FormerIDs, h.ID); taken {
			return formerIDTaken(other, id, one)
		}
		for _, claimed := range other.Handler.FormerIDs {
			if id, taken := r.shared(h.FormerIDs, claimed); taken {
				return fmt.Errorf("%s(%q): the former id %q is a former id of %s(%q) at %s as well; only one handler "+
					"can take over from it", one.Verb, h.ID, id, other.Verb, other.Handler.ID, other.Handler.Location)
			}
		}
	}
	return nil
}

func formerIDTaken(renamed ResolvedEntry, id string, other ResolvedEntry) error {
	return fmt.Errorf("%s(%q): the former id %q belongs to %s(%q) at %s; give that handler another id, or remove the "+
		"former id", renamed.Verb, renamed.Handler.ID, id, other.Verb, other.Handler.ID, other.Handler.Location)
}

// shared returns the former id that is the given id, or is stored at the same place.
func (r PlanRules) shared(former []string, id string) (string, bool) {
	for _, old := range former {
		if old == id || defaults.SharePlace(r.Progress, old, id) {
			return old, true
		}
	}
	return "", false
}

// ShareFormerIDs gives the handlers of one id the former ids of all of them, and each handler those of its kind.
func ShareFormerIDs(all []ResolvedEntry) {
	if !slices.ContainsFunc(all, func(one ResolvedEntry) bool { return len(one.Handler.FormerIDs) > 0 }) {
		return
	}
	found := make([]storages.Renamed, len(all))
	for i, one := range all {
		for _, other := range all {
			if other.Handler.HasResult() && one.Selector.MayMean(other.Selector) {
				found[i] = found[i].With(other.Handler.ID, other.Handler.FormerIDs)
			}
		}
	}
	for i, one := range all {
		one.Handler.Renamed = found[i]
		if one.Handler.Stores() {
			one.Handler.FormerIDs = found[i][one.Handler.ID]
		}
	}
}
