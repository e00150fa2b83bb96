package orchestration

import (
	"context"
	"time"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/discovery"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/resync"
)

// NewOnce makes an Orchestrator that finds out once what the selectors mean, and has controllers run for that until the
// end. Kinds that come, change or go later are not noticed. Kopf: scanning.disabled.
func NewOnce(registrations []Registration, server discovery.Getter, runner Runner) *Orchestrator {
	o := New(registrations, server, runner, nil)
	o.once = true
	return o
}

// resolveOnce asks for all selectors until the API server has answered for each: that it does not serve a resource is
// an answer, too.
func (o *Orchestrator) resolveOnce(ctx context.Context) {
	for pause := resync.Backoff(); ; {
		o.resync(ctx, o.selectors)
		if o.answered() {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(max(pause.Step(), o.delay)):
		}
	}
}

// answered tells whether the meaning of each selector is known, and known to be complete.
func (o *Orchestrator) answered() bool {
	for _, selector := range o.selectors {
		if r, known := o.resolutions[selector]; !known || r.Incomplete {
			return false
		}
	}
	return true
}
