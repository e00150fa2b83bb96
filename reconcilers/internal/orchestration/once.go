package orchestration

import (
	"context"
	"time"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/discovery"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/resync"
)

// NewOnce creates an Orchestrator that resolves the selectors only at the start, and runs controllers for the result
// until the end. Kinds that are added, changed or removed later have no effect. Kopf: scanning.disabled.
func NewOnce(registrations []SelectedHandler, server discovery.Getter, runner Runner) *Orchestrator {
	o := New(registrations, server, runner, nil)
	o.resolvesOnce = true
	return o
}

// resolveOnce resolves all selectors repeatedly until the API server has answered for each of them. That a resource is
// not served counts as an answer.
func (o *Orchestrator) resolveOnce(ctx context.Context) {
	for pause := resync.Backoff(); ; {
		o.resolveAndAdjust(ctx, o.selectors)
		if o.hasAllAnswers() {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(max(pause.Step(), o.retryAfter)):
			// The backoff, or Retry-After of the API server if that is longer.
		}
	}
}

// hasAllAnswers reports whether the resolution of each selector is known and complete.
func (o *Orchestrator) hasAllAnswers() bool {
	for _, selector := range o.selectors {
		if r, known := o.resolutions[selector]; !known || r.Incomplete {
			return false
		}
	}
	return true
}
