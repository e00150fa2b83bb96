package adapters

import (
	"github.com/kopf-runtime/kopf-runtime/reconcilers/cause"
)

// anyReason is for handlers of changes that have no adapter for one reason, such as those of a field, and
// sub-handlers: they are for all reasons.
func anyReason(h *Handler) Adapter {
	reason := h.Description.Reason
	switch reason {
	case cause.Create, cause.Update, cause.Delete:
		return nil
	case "":
		if h.Description.Initial {
			return nil
		}
		return deciding(h, "AnyReason", func(*cause.Cause) bool { return true }, otherReason(""))
	default: // one that only informs has no adapter of its own
		return deciding(
			h, "AnyReason", func(c *cause.Cause) bool { return c.Reason == reason }, otherReason(reason),
		)
	}
}
