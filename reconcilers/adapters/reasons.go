package adapters

import (
	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/execution"
)

// reasonAdapter lists the adapter that selects the handlers of one reason, for the causes that fit.
func reasonAdapter(name string, reason cause.Reason, fits func(*cause.Cause) bool) namedAdapter {
	return namedAdapter{name, func(h *HandlerChain) Adapter {
		if h.Description.Reason != reason {
			return nil
		}
		return causeAdapter(h, name, fits, otherReason(reason))
	}}
}

// resumedAdapter selects resume handlers for objects that existed when the operator started, whatever has happened to
// them since. Objects that are being deleted are only included with EvenIfDeleted.
func resumedAdapter(h *HandlerChain) Adapter {
	if !h.Description.Initial {
		return nil
	}
	evenIfDeleted := h.Description.EvenIfDeleted
	fits := func(c *cause.Cause) bool { return c.IsResumed(evenIfDeleted) }
	return causeAdapter(h, "Resumed", fits, func(c *cause.Cause) execution.Stop {
		// Initial objects are only excluded while they are being deleted.
		if c.Initial {
			return execution.Stop{Reason: execution.BeingDeleted}
		}
		return execution.Stop{Reason: execution.NotInitial}
	})
}

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
