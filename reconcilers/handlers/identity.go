package handlers

import (
	"cmp"
	"slices"
)

// FullID is the id as it is persisted: with the field, if the handler has one that is not the empty key. Indices are
// known by their own ids alone.
func (h *Handler) FullID() string {
	suffix := h.Field.String()
	if suffix == "" || h.Family == Indexing {
		return h.ID
	}
	return h.ID + "/" + suffix
}

// FullFormerIDs are the former ids as they were persisted: see [Handler.FullID].
func (h *Handler) FullFormerIDs() []string {
	var full []string
	for _, id := range h.FormerIDs {
		full = append(full, (&Handler{ID: id, Field: h.Field, Family: h.Family}).FullID())
	}
	return full
}

// SubID is the id of a sub-handler. Its field is no part of it.
func SubID(parent, id string) string { return parent + "/" + id }

// Sub is the handler as a sub-handler of the parent: under the id of both, in the field of both, and for changes only
// if the parent is.
func (h *Handler) Sub(parent *Handler) *Handler {
	own := *h
	own.ID, own.NeedsChange = SubID(parent.ID, h.ID), parent.NeedsChange
	own.Root, own.Reserved, own.Observe = cmp.Or(parent.Root, parent.ID), parent.Reserved, parent.Observe
	own.FormerIDs, own.Renamed = h.formerSubIDs(parent), parent.Renamed
	if h.Field == nil {
		own.Value = parent.Value
	}
	if parent.Field != nil {
		own.Field = slices.Concat(parent.Field, h.Field)
	}
	return &own
}

// formerSubIDs are the ids that the handler has had as a sub-handler of the parent, which may be renamed as well.
func (h *Handler) formerSubIDs(parent *Handler) (former []string) {
	for _, id := range append([]string{h.ID}, h.FormerIDs...) {
		for _, parentID := range append([]string{parent.ID}, parent.FormerIDs...) {
			former = append(former, SubID(parentID, id))
		}
	}
	return former[1:] // the first one is the present id
}

// Twin is true for another registration of the same thing: such as of one function by two selections that have a
// resource in common. Different closures of one function literal are not twins.
func (h *Handler) Twin(other *Handler) bool {
	return h == other || h.Repeats(other) && h.Instance == other.Instance &&
		h.Family == other.Family && h.Reason == other.Reason &&
		h.Initial == other.Initial && h.NeedsChange == other.NeedsChange && h.Index.sameTarget(other.Index) &&
		h.Mutating == other.Mutating
}

// Repeats is true for the same function under the same id, for whatever reason it is registered.
func (h *Handler) Repeats(other *Handler) bool {
	return h.ID == other.ID && h.Function != nil && h.Function == other.Function
}

// Clashes is true for another thing under the same id: the two would take each other's progress for their own.
func (h *Handler) Clashes(other *Handler) bool {
	if (h.Family == Changing || h.Family == Spawning) && h.Repeats(other) {
		return false // closures of one literal share the record: one of them is called
	}
	return !h.Twin(other) && h.ID == other.ID && h.Family == other.Family && h.Reason == other.Reason &&
		h.Initial == other.Initial && h.NeedsChange == other.NeedsChange && h.Mutating == other.Mutating
}
