package registry

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/codec"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/defaults"
	"github.com/kopf-runtime/kopf-runtime/internal/discovery"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/internal/storages"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

// PlanRules are the settings that affect a plan.
type PlanRules struct {
	// KopfFormats is true with AsKopf.
	KopfFormats bool
	// IgnoredFields are the ignored fields of the settings, as the user wrote them.
	IgnoredFields []string
	// ProgressStorage stores the records of handlers. Places returns the places that the operator itself uses on
	// objects.
	ProgressStorage progress.Storage
	StoragePointers func() ([]string, error)
	// Conditions adds reporters for all handlers. ConditionTypes are the types of conditions that reporters set.
	Conditions     bool
	ConditionTypes []string
	// AdditionalHandlers returns additional handlers of the operator itself; nil adds none.
	AdditionalHandlers func(all []ResolvedEntry) []ResolvedEntry
}

// BuildPlan resolves all kinds by the scheme, and then checks the handlers. It returns all errors, not only the first
// one. The caller holds the lock of the registry.
func (r *HandlerRegistry) BuildPlan(scheme *runtime.Scheme, rules PlanRules) (all []ResolvedEntry, wrong SetupErrors) {
	all, wrong = r.resolveKinds(scheme)
	wrong = append(wrong, r.checkIgnored(rules.IgnoredFields)...)
	// The operator's own handlers depend on those of the user, and are checked with them.
	if rules.AdditionalHandlers != nil {
		all = append(all, rules.AdditionalHandlers(all)...)
	}
	if rules.Conditions {
		all = append(all, conditionReporters(all)...)
	}
	reserveConditions(all, rules.ConditionTypes)
	// Compare each handler to those before it, so that the error has the location of the later registration.
	for i, one := range all {
		if err := rules.checkEntry(one, all[:i]); err != nil {
			wrong.AddAt(one.Handler.Location, err)
		}
	}
	return all, wrong
}

// resolveKinds resolves each kind once: an unknown type causes one error, however many handlers it has.
func (r *HandlerRegistry) resolveKinds(scheme *runtime.Scheme) (all []ResolvedEntry, unknown SetupErrors) {
	selectors := map[*SelectedKind]discovery.Selector{}
	failed := map[*SelectedKind]bool{}
	for _, e := range r.Entries {
		// All handlers of one selection share its SelectedKind.
		selector, done := selectors[e.Kind]
		if !done && !failed[e.Kind] {
			var err error
			if selector, err = e.Kind.Find(scheme); err != nil {
				failed[e.Kind] = true
				unknown.AddAt(e.Kind.Location, err)
			}
			selectors[e.Kind] = selector
		}
		if !failed[e.Kind] {
			all = append(all, ResolvedEntry{e, selector})
		}
	}
	return all, unknown
}

// checkEntry returns the mistake of an entry with respect to the entries before it.
func (r PlanRules) checkEntry(one ResolvedEntry, before []ResolvedEntry) error {
	switch {
	case IsAdmissionHandler(one.Handler):
		return r.checkAdmission(one, before)
	case hasNoRecord(one.Handler), ReportsConditions(one.Handler):
		return cmp.Or(r.checkConflict(one, before), r.checkFormerIDs(one, before))
	}
	return cmp.Or(
		r.checkConflict(one, before), r.checkRecordPlace(one, one.Handler.ID), r.checkFormerIDs(one, before),
	)
}

// checkConflict returns an error if the handler cannot be distinguished from one before it: progress is stored under
// the id.
func (r PlanRules) checkConflict(one ResolvedEntry, before []ResolvedEntry) error {
	id := one.Handler.ID
	for _, other := range before {
		switch taken := other.Handler; {
		// These handlers never meet: admission stores nothing, and objects of other kinds have their own records.
		case IsAdmissionHandler(taken), !one.Selector.MayMean(other.Selector):
		// Two versions of one resource are the same objects, which would be handled twice.
		case one.Selector.ContradictsVersion(other.Selector):
			return fmt.Errorf("%s(%q): the kind is selected as %s here, and as %s by %s(%q) at %s: they are the "+
				"same objects; choose one version",
				one.Verb, id, one.Selector, other.Selector, other.Verb, taken.ID, taken.Location)
		case ReportsConditions(taken), ReportsConditions(one.Handler):
		// The same function under several selections is one handler.
		case other.Verb == one.Verb && taken.IsTwin(one.Handler):
		// Different verbs may share an id. Daemons and timers count as one verb here.
		case taken.ID == id &&
			(other.Verb == one.Verb || one.Handler.Family == handlers.Background &&
				taken.Family == handlers.Background):
			return idTakenError(one, other)
		// Handlers without records can have ids that are stored at the same place.
		case hasNoRecord(taken), hasNoRecord(one.Handler):
		case taken.ID != id && defaults.ShareRecordPlace(r.ProgressStorage, taken.ID, id):
			return fmt.Errorf("%s(%q): the id has the same annotation as %q of %s at %s; change one of them",
				one.Verb, id, taken.ID, other.Verb, taken.Location)
		}
	}
	return nil
}

// checkAdmission returns an error if requests cannot be distinguished from those for an admission handler before it:
// the id is part of the path of the webhook.
func (r PlanRules) checkAdmission(one ResolvedEntry, before []ResolvedEntry) error {
	id := one.Handler.ID
	for _, other := range before {
		if !IsAdmissionHandler(other.Handler) || other.Verb != one.Verb || other.Handler.ID != id {
			continue
		}
		if other.Handler.IsTwin(one.Handler) {
			continue
		}
		if one.Selector.MayMean(other.Selector) {
			return idTakenError(one, other)
		}
		// Otherwise, each handler has a path of its own.
		if r.KopfFormats {
			return fmt.Errorf("%s(%q): the id is taken for another kind at %s: with kopf.AsKopf, both would be served "+
				"at one path; choose another one", one.Verb, id, other.Handler.Location)
		}
	}
	return nil
}

// idTakenError returns the error for two functions under one id. Registering one function under one id for several
// selections is valid: it is called once.
func idTakenError(one, other ResolvedEntry) error {
	return fmt.Errorf("%s(%q): the id is taken by %s at %s for another function; give this one its own id, or "+
		"register one function value under both selections",
		one.Verb, one.Handler.ID, other.Verb, other.Handler.Location)
}

// checkIgnored returns errors for ignored fields that no kind has. A typing error in a path would otherwise mean that
// the field is not ignored.
func (r *HandlerRegistry) checkIgnored(fields []string) (wrong SetupErrors) {
	for _, text := range fields {
		path, err := codec.ParsePath(text)
		if err != nil {
			continue // reported with the other settings
		}
		if missing := r.missingFieldErrors(path); len(missing) > 0 {
			wrong.AddAt(r.Location, fmt.Errorf("kopf.New: Persistence.IgnoredFields: %w", errors.Join(missing...)))
		}
	}
	return wrong
}

// missingFieldErrors returns an error for each kind without the field, or nothing if any kind has it.
func (r *HandlerRegistry) missingFieldErrors(field diff.Path) (missing []error) {
	// Several selections of one Go type cause the same error.
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

// checkRecordPlace returns an error if a record under the id would overwrite other data of the operator on objects.
func (r PlanRules) checkRecordPlace(one ResolvedEntry, id string) error {
	places, err := defaults.RecordPlaces(r.ProgressStorage, id)
	if err != nil {
		return fmt.Errorf("%s(%q): %w", one.Verb, id, err)
	}
	taken, err := r.StoragePointers()
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

// conditionsID is the id of reporters in log lines that list handlers.
const conditionsID = "conditions"

// NewReporter returns a handler that selects the objects with conditions. The engine never calls it.
func NewReporter(where string, filters []handlers.Filter) *handlers.Handler {
	return &handlers.Handler{
		ID: conditionsID, Family: handlers.Condition, Filters: filters, FunctionKey: conditionsID, Location: where,
	}
}

// conditionReporters returns the reporters of an operator with Settings.Conditions. An object has conditions if at
// least one of its handlers selects it, so each handler needs a reporter with its filters.
func conditionReporters(all []ResolvedEntry) (more []ResolvedEntry) {
	// A handler without filters selects all objects of its kind, so further reporters for the kind are redundant.
	whole := map[discovery.Selector]bool{}
	for _, one := range all {
		family := one.Handler.Family
		counts := family == handlers.Changing || family == handlers.Background || family == handlers.Watching
		if !counts || whole[one.Selector] {
			continue
		}
		whole[one.Selector] = len(one.Handler.Filters) == 0
		h := NewReporter(one.Handler.Location, one.Handler.Filters)
		more = append(more, ResolvedEntry{HandlerEntry{Kind: one.Kind, Verb: "Conditions", Handler: h}, one.Selector})
	}
	return more
}

// reserveConditions reserves the condition types of reporters, so that handlers of the same objects cannot set them.
func reserveConditions(all []ResolvedEntry, types []string) {
	for _, one := range all {
		reported := func(other ResolvedEntry) bool {
			return ReportsConditions(other.Handler) && one.Selector.MayMean(other.Selector)
		}
		// Reset first: a handler keeps its fields between two plans.
		if one.Handler.ReservedConditions = nil; slices.ContainsFunc(all, reported) {
			one.Handler.ReservedConditions = types
		}
	}
}

// checkFormerIDs returns an error if a former id of the handler belongs to a handler before it, or the other way
// around.
func (r PlanRules) checkFormerIDs(one ResolvedEntry, before []ResolvedEntry) error {
	h := one.Handler
	if slices.Contains(h.FormerIDs, h.ID) {
		return fmt.Errorf("%s(%q): FormerIDs(%q): this is the present id", one.Verb, h.ID, h.ID)
	}
	// Records under former ids are used, too, so they must not be other data of the operator.
	for _, id := range h.FormerIDs {
		if err := r.checkRecordPlace(one, id); err != nil {
			return err
		}
	}
	for _, other := range before {
		// Former ids only matter between handlers that can have results.
		haveResults := h.HasResult() && other.Handler.HasResult()
		if !haveResults || !one.Selector.MayMean(other.Selector) || other.Handler.ID == h.ID {
			continue
		}
		// Check both directions, because either handler may have been registered first.
		if id, taken := r.sharedFormerID(h.FormerIDs, other.Handler.ID); taken {
			return formerIDTakenError(one, id, other)
		}
		if id, taken := r.sharedFormerID(other.Handler.FormerIDs, h.ID); taken {
			return formerIDTakenError(other, id, one)
		}
		// Progress under a former id cannot be split between two handlers.
		for _, claimed := range other.Handler.FormerIDs {
			if id, taken := r.sharedFormerID(h.FormerIDs, claimed); taken {
				return fmt.Errorf("%s(%q): the former id %q is a former id of %s(%q) at %s as well; only one handler "+
					"can take over from it", one.Verb, h.ID, id, other.Verb, other.Handler.ID, other.Handler.Location)
			}
		}
	}
	return nil
}

// formerIDTakenError returns the error for a former id that is the present id of another handler.
func formerIDTakenError(renamed ResolvedEntry, id string, other ResolvedEntry) error {
	return fmt.Errorf("%s(%q): the former id %q belongs to %s(%q) at %s; give that handler another id, or remove the "+
		"former id", renamed.Verb, renamed.Handler.ID, id, other.Verb, other.Handler.ID, other.Handler.Location)
}

// sharedFormerID returns the former id that equals the id, or whose record has the same place.
func (r PlanRules) sharedFormerID(former []string, id string) (string, bool) {
	for _, old := range former {
		if old == id || defaults.ShareRecordPlace(r.ProgressStorage, old, id) {
			return old, true
		}
	}
	return "", false
}

// ShareFormerIDs gives each handler the former ids of all handlers with its id, and of all other handlers of the kind:
// a handler can read the results of others by their present ids.
func ShareFormerIDs(all []ResolvedEntry) {
	// Most operators have no former ids. The loops below are quadratic.
	if !slices.ContainsFunc(all, func(one ResolvedEntry) bool { return len(one.Handler.FormerIDs) > 0 }) {
		return
	}
	found := make([]storages.Renamed, len(all))
	for i, one := range all {
		for _, other := range all {
			if other.Handler.HasResult() && one.Selector.MayMean(other.Selector) {
				found[i] = found[i].AddFormerIDs(other.Handler.ID, other.Handler.FormerIDs)
			}
		}
	}
	for i, one := range all {
		one.Handler.KindFormerIDs = found[i]
		if one.Handler.StoresUnderID() {
			one.Handler.FormerIDs = found[i][one.Handler.ID]
		}
	}
}
