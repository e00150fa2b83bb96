package adapters

import (
	"github.com/kopf-runtime/kopf-runtime/reconcilers/cause"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
)

// resumed lets resume handlers run for objects that were there when the operator started, whatever else has happened to
// them: only those that are being deleted must be asked for.
func resumed(h *Handler) Adapter {
	if !h.Description.Initial {
		return nil
	}
	evenIfDeleted := h.Description.EvenIfDeleted
	fits := func(c *cause.Cause) bool { return c.Resumed(evenIfDeleted) }
	return deciding(h, "Resumed", fits, func(c *cause.Cause) execution.Stop {
		if c.Initial {
			return execution.Stop{Why: execution.BeingDeleted}
		}
		return execution.Stop{Why: execution.NotInitial}
	})
}
