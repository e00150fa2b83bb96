package adapters

import "github.com/kopf-runtime/kopf-runtime/reconcilers/cause"

// deletedAdapter selects deletion handlers for objects that are being deleted and have our finalizer.
func deletedAdapter(h *HandlerChain) Adapter {
	if h.Description.Reason != cause.Delete {
		return nil
	}
	return causeAdapter(h, "Deleted", (*cause.Cause).IsDeleted, otherReason(cause.Delete))
}
