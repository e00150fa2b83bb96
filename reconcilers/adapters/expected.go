package adapters

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/cause"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
)

// operations are those of requests for admission.
var operations = []string{"CREATE", "UPDATE", "DELETE", "CONNECT"}

// ExpectFailures has the counters of the failed calls of the handler exist with 0, for objects of a kind that is served
// from now on. Otherwise the first failure in a process makes a new series, whose increase is 0 for Prometheus. The
// handler may have sub-handlers, which share one label.
func (h *Handler) ExpectFailures(kind schema.GroupKind) {
	d := h.Description
	if h.metrics == nil || !slices.Contains(h.names, "Metrics") {
		return
	}
	outcomes := []string{failure, retry}
	if d.Family == handlers.Admitting {
		outcomes = []string{failure, denied}
	}
	for _, reason := range possibleReasons(d) {
		h.metrics.Expect(kind.String(), d.Label(), reason, outcomes...)
		if d.Family == handlers.Changing {
			h.metrics.Expect(kind.String(), handlers.SubID(d.ID, "*"), reason, failure)
		}
	}
}

// possibleReasons are the values that reasonLabel may have for a handler.
func possibleReasons(d *handlers.Handler) []string {
	switch {
	case d.Family == handlers.Admitting && len(d.Operations) > 0:
		return d.Operations
	case d.Family == handlers.Admitting:
		return operations
	case d.Family != handlers.Changing:
		return []string{""}
	case d.Reason != "":
		return []string{string(d.Reason)}
	case d.Initial && !d.EvenIfDeleted:
		return []string{string(cause.Create), string(cause.Update), string(cause.Resume)}
	default:
		return []string{string(cause.Create), string(cause.Update), string(cause.Delete), string(cause.Resume)}
	}
}
