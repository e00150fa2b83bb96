package handlers

import (
	"cmp"
	"slices"
)

// Sub is the handler as a sub-handler of the parent: under the id of both, in the field of both, and for changes only
// if the parent is.
func (h *Handler) Sub(parent *Handler) *Handler {
	own := *h
	own.ID, own.NeedsChange = SubID(parent.ID, h.ID), parent.NeedsChange
	own.Root = cmp.Or(parent.Root, parent.ID)
	if h.Field == nil {
		own.Value = parent.Value
	}
	if parent.Field != nil {
		own.Field = slices.Concat(parent.Field, h.Field)
	}
	return &own
}
