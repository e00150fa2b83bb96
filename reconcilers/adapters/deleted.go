package adapters

import (
	"github.com/kopf-runtime/kopf-runtime/reconcilers/cause"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
)

// deleted lets deletion handlers run for objects that are being deleted and have our finalizer.
func deleted(h *Handler) Adapter {
	if h.Description.Reason != cause.Delete {
		return nil
	}
	return deciding(h, "Deleted", func(c *cause.Cause) execution.Stop {
		return otherReason(c.Deleted(), cause.Delete, c)
	})
}
