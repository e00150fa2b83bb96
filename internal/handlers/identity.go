package handlers

import (
	"cmp"
	"slices"
)

// FullID returns the persisted id: with the field as a suffix, unless the field is empty. Indices are known by their
// plain ids.
func (h *Handler) FullID() string {
	suffix := h.Field.String()
	if suffix == "" || h.Family == Indexing {
		return h.ID
	}
	return h.ID + "/" + suffix
}

// FullFormerIDs returns the former ids in their persisted form: see [Handler.FullID].
func (h *Handler) FullFormerIDs() []string {
	var full []string
	for _, id := range h.FormerIDs {
		full = append(full, (&Handler{ID: id, Field: h.Field, Family: h.Family}).FullID())
	}
	return full
}

// SubID returns the id of a sub-handler. Unlike other ids, it does not include the field.
func SubID(parent, id string) string { return parent + "/" + id }

// AsSubHandler returns the handler as a sub-handler of the parent. The ids and the fields of both are joined. The
// sub-handler needs a change only if its parent does.
func (h *Handler) AsSubHandler(parent *Handler) *Handler {
	own := *h
	own.ID, own.NeedsChange = SubID(parent.ID, h.ID), parent.NeedsChange
	own.Root, own.ReservedConditions, own.Observe = cmp.Or(parent.Root, parent.ID), parent.ReservedConditions,
		parent.Observe
	own.FormerIDs, own.KindFormerIDs = h.formerSubIDs(parent), parent.KindFormerIDs
	if h.Field == nil {
		own.Value = parent.Value
	}
	if parent.Field != nil {
		own.Field = slices.Concat(parent.Field, h.Field)
	}
	return &own
}

// formerSubIDs returns all former ids of the sub-handler. The handler and the parent can both have been renamed, so
// each combination of their ids counts.
func (h *Handler) formerSubIDs(parent *Handler) (former []string) {
	for _, id := range append([]string{h.ID}, h.FormerIDs...) {
		for _, parentID := range append([]string{parent.ID}, parent.FormerIDs...) {
			former = append(former, SubID(parentID, id))
		}
	}
	return former[1:] // the first combination is the present id
}

// IsTwin reports whether the other handler is another registration of the same function for the same purpose, for
// example by two selections that share a resource. Different closures of one function literal are not twins.
func (h *Handler) IsTwin(other *Handler) bool {
	return h == other || h.RepeatsFunction(other) && h.InstanceKey == other.InstanceKey &&
		h.Family == other.Family && h.Reason == other.Reason &&
		h.Initial == other.Initial && h.NeedsChange == other.NeedsChange && h.Index.sameTarget(other.Index) &&
		h.Mutating == other.Mutating
}

// RepeatsFunction reports whether both have the same function and id, even if they are registered for different
// reasons.
func (h *Handler) RepeatsFunction(other *Handler) bool {
	return h.ID == other.ID && h.FunctionKey != nil && h.FunctionKey == other.FunctionKey
}

// ClashesWith reports whether both have the same id for different functions: they would read each other's progress.
func (h *Handler) ClashesWith(other *Handler) bool {
	if (h.Family == Changing || h.Family == Background) && h.RepeatsFunction(other) {
		return false // closures of one literal share the record, and one of them is called
	}
	return !h.IsTwin(other) && h.ID == other.ID && h.Family == other.Family && h.Reason == other.Reason &&
		h.Initial == other.Initial && h.NeedsChange == other.NeedsChange && h.Mutating == other.Mutating
}
