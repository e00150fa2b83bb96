package registry

import (
	"fmt"
	"slices"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/persistence"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/storages"
)

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
		if old == id || persistence.SharePlace(r.Progress, old, id) {
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
