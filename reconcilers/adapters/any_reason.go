package adapters

import (
	"github.com/kopf-runtime/kopf-runtime/reconcilers/cause"
)

// anyReasonAdapter selects changing handlers that do not have an adapter for one reason, such as handlers of a field
// and sub-handlers. They match every reason.
func anyReasonAdapter(h *HandlerChain) Adapter {
	reason := h.Description.Reason
	switch reason {
	case cause.Create, cause.Update, cause.Delete:
		return nil
	// Resume handlers have no reason either, but the Resumed adapter decides on them.
	case "":
		if h.Description.Initial {
			return nil
		}
		return causeAdapter(h, "AnyReason", func(*cause.Cause) bool { return true }, otherReason(""))
	default: // informational reasons do not have an adapter of their own
		return causeAdapter(
			h, "AnyReason", func(c *cause.Cause) bool { return c.Reason == reason }, otherReason(reason),
		)
	}
}
