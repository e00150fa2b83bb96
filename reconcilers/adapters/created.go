package adapters

import (
	"github.com/kopf-runtime/kopf-runtime/reconcilers/cause"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
)

// created lets creation handlers run for objects that were never handled to the end: there is no last-handled essence.
func created(h *Handler) Adapter {
	if h.Description.Reason != cause.Create {
		return nil
	}
	return deciding(h, "Created", func(c *cause.Cause) execution.Stop {
		return otherReason(c.Created(), cause.Create, c)
	})
}
