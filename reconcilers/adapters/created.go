package adapters

import "github.com/kopf-runtime/kopf-runtime/reconcilers/cause"

// createdAdapter selects creation handlers for objects that were never handled completely: they have no last-handled
// essence.
func createdAdapter(h *HandlerChain) Adapter {
	if h.Description.Reason != cause.Create {
		return nil
	}
	return causeAdapter(h, "Created", (*cause.Cause).IsCreated, otherReason(cause.Create))
}
