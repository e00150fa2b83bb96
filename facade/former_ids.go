package kopf

import (
	"errors"
	"fmt"
	"slices"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/persistence"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/storages"
	"github.com/kopf-runtime/kopf-runtime/storage/keys"
)

// storingOption is an option of the verbs that store something under the id of the handler: those for changes, and
// those in the background.
type storingOption interface {
	changeOption
	backgroundOption
}

// FormerIDs renames a handler: it takes over the unfinished progress, the result and the children of former ids. The
// present id takes precedence. A former id is given as the id was, without the field. See docs/renaming.md. Kopf: none.
func FormerIDs(ids ...string) storingOption {
	ids = slices.Clone(ids)
	var wrong []error
	if len(ids) == 0 {
		wrong = append(wrong, errors.New("FormerIDs(): give the former ids"))
	}
	for _, id := range ids {
		if err := keys.ValidateID(id); err != nil {
			wrong = append(wrong, fmt.Errorf("FormerIDs(%q): %w", id, err))
		}
	}
	return optionOf[storingOption]("FormerIDs", errors.Join(wrong...), func(h *handlers.Handler) { h.FormerIDs = ids })
}

// checkFormerIDs returns an error if a former id of the handler, or of one before it, belongs to another handler.
func (op *Operator) checkFormerIDs(one resolved, before []resolved) error {
	h := one.handler
	if slices.Contains(h.FormerIDs, h.ID) {
		return fmt.Errorf("%s(%q): FormerIDs(%q): this is the present id", one.verb, h.ID, h.ID)
	}
	for _, id := range h.FormerIDs {
		if err := op.checkRecordPlace(one, id); err != nil {
			return err
		}
	}
	for _, other := range before {
		haveResults := h.HasResult() && other.handler.HasResult()
		if !haveResults || !one.selector.MayMean(other.selector) || other.handler.ID == h.ID {
			continue
		}
		if id, taken := op.shared(h.FormerIDs, other.handler.ID); taken {
			return formerIDTaken(one, id, other)
		}
		if id, taken := op.shared(other.handler.FormerIDs, h.ID); taken {
			return formerIDTaken(other, id, one)
		}
		for _, claimed := range other.handler.FormerIDs {
			if id, taken := op.shared(h.FormerIDs, claimed); taken {
				return fmt.Errorf("%s(%q): the former id %q is a former id of %s(%q) at %s as well; only one handler "+
					"can take over from it", one.verb, h.ID, id, other.verb, other.handler.ID, other.handler.Location)
			}
		}
	}
	return nil
}

func formerIDTaken(renamed resolved, id string, other resolved) error {
	return fmt.Errorf("%s(%q): the former id %q belongs to %s(%q) at %s; give that handler another id, or remove the "+
		"former id", renamed.verb, renamed.handler.ID, id, other.verb, other.handler.ID, other.handler.Location)
}

// shared returns the former id that is the given id, or is stored at the same place.
func (op *Operator) shared(former []string, id string) (string, bool) {
	kept := op.settings.values.Persistence.ProgressStorage
	for _, old := range former {
		if old == id || persistence.SharePlace(kept, old, id) {
			return old, true
		}
	}
	return "", false
}

// shareFormerIDs gives the handlers of one id the former ids of all of them, and each handler those of its kind.
func (op *Operator) shareFormerIDs(all []resolved) {
	if !slices.ContainsFunc(all, func(one resolved) bool { return len(one.handler.FormerIDs) > 0 }) {
		return
	}
	found := make([]storages.Renamed, len(all))
	for i, one := range all {
		for _, other := range all {
			if other.handler.HasResult() && one.selector.MayMean(other.selector) {
				found[i] = found[i].With(other.handler.ID, other.handler.FormerIDs)
			}
		}
	}
	for i, one := range all {
		one.handler.Renamed = found[i]
		if one.handler.Stores() {
			one.handler.FormerIDs = found[i][one.handler.ID]
		}
	}
}
