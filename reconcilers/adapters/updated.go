package adapters

import "github.com/kopf-runtime/kopf-runtime/reconcilers/cause"

// updatedAdapter selects update handlers for objects whose essence differs from the last-handled one.
func updatedAdapter(h *HandlerChain) Adapter {
	if h.Description.Reason != cause.Update {
		return nil
	}
	return causeAdapter(h, "Updated", (*cause.Cause).IsUpdated, otherReason(cause.Update))
}
