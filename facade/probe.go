package facade

import (
	"context"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/activities"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
)

// OnProbe registers a handler that tells something of the health of the operator. Not served yet. Kopf: on.probe.
func (op *Operator) OnProbe(
	id string, fn func(ctx context.Context, a *Activity) (any, error), opts ...ActivityOption,
) {
	op.act("OnProbe", activities.Probe, id, opts, caller(fn == nil, func(
		ctx context.Context, call *handlers.Call,
	) (any, error) {
		return fn(ctx, activityOf(call))
	}), errNotServed)
}
