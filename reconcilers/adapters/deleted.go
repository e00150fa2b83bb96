package adapters

import "github.com/kopf-runtime/kopf-runtime/reconcilers/cause"

// deleted selects deletion handlers for objects that are being deleted and have our finalizer.
func deleted(h *Handler) Adapter {
	if h.Description.Reason != cause.Delete {
		return nil
	}
	return deciding(h, "Deleted", (*cause.Cause).Deleted, otherReason(cause.Delete))
}
