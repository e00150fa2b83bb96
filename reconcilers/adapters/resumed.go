package adapters

import (
	"github.com/kopf-runtime/kopf-runtime/reconcilers/cause"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
)

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
