package adapters

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
)

// operations are the operations of admission requests.
var operations = []string{"CREATE", "UPDATE", "DELETE", "CONNECT"}

// ExpectFailures creates the counters of the handler's failed calls with the value 0, for a kind that is served from
// now on. Otherwise the first failure would create the series with the value 1, and Prometheus would not see an
// increase. All sub-handlers of the handler share one label.
func (h *HandlerChain) ExpectFailures(kind schema.GroupKind) {
	d := h.Description
	if h.metrics == nil || !slices.Contains(h.names, "Metrics") {
		return
	}
	// Admission handlers are never retried. A denial is their answer, but an alert may still need it.
	outcomes := []string{outcomeFailure, outcomeRetry}
	if d.Family == handlers.Admitting {
		outcomes = []string{outcomeFailure, outcomeDenied}
	}
	for _, reason := range possibleReasons(d) {
		h.metrics.InitializeAttempts(kind.String(), d.MetricsLabel(), reason, outcomes...)
		// The ids of sub-handlers are unknown before they are called, but their label is not.
		if d.Family == handlers.Changing {
			h.metrics.InitializeAttempts(kind.String(), handlers.SubID(d.ID, "*"), reason, outcomeFailure)
		}
	}
}

// possibleReasons returns all values that reasonLabel can have for a handler.
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
	// The cause of a resume handler may have any reason but a deletion.
	case d.Initial && !d.EvenIfDeleted:
		return []string{string(cause.Create), string(cause.Update), string(cause.Resume)}
	default:
		return []string{string(cause.Create), string(cause.Update), string(cause.Delete), string(cause.Resume)}
	}
}
