package adapters

import "github.com/kopf-runtime/kopf-runtime/reconcilers/cause"

// created selects creation handlers for objects that were never handled completely: they have no last-handled
// essence.
func created(h *Handler) Adapter {
	if h.Description.Reason != cause.Create {
		return nil
	}
	return deciding(h, "Created", (*cause.Cause).Created, otherReason(cause.Create))
}
