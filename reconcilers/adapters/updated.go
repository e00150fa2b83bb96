package adapters

import "github.com/kopf-runtime/kopf-runtime/reconcilers/cause"

// updated selects update handlers for objects whose essence differs from the last-handled one.
func updated(h *Handler) Adapter {
	if h.Description.Reason != cause.Update {
		return nil
	}
	return deciding(h, "Updated", (*cause.Cause).Updated, otherReason(cause.Update))
}
