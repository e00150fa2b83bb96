package kopf

import (
	"context"
	"fmt"

	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/registry"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/activities"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
)

// OnStartup registers a handler that is called before all others, such as to change settings. Under [Main] everything
// waits for it; under [Operator.SetupWithManager] only this operator does. Errors mean the same as in a [ChangeFunc]. A
// permanent failure ends the program or the manager. See docs/activities.md. Kopf: on.startup.
func (op *Operator) OnStartup(
	id string, fn func(ctx context.Context, a *Activity) error, opts ...activityOption,
) {
	op.act("OnStartup", activities.Startup, id, opts, caller(fn == nil, func(
		ctx context.Context, call *handlers.Invocation,
	) (any, error) {
		op.registry.Lock()
		a := &Activity{
			ID: call.Handler.ID, Retry: call.Retry, Started: call.Started, Settings: op.changing, cluster: op.cluster,
		}
		op.registry.Unlock()
		a.Client, a.APIReader = op.ownClients()
		return nil, fn(ctx, a)
	}))
}

// startUp calls the startup handlers and takes over the settings that they leave. It returns false if the operator must
// not continue: with an error, or because the operator is stopping.
func (op *Operator) startUp(ctx context.Context) (ready bool, err error) {
	op.registry.Lock()
	changing := op.given.clone()
	op.changing = &changing
	if op.registry.Stage == registry.Registering {
		op.registry.Stage = registry.Starting
	}
	op.registry.Unlock()
	_, err = op.activity(activities.Startup).Run(logf.IntoContext(ctx, op.logger()))
	op.registry.Lock()
	defer op.registry.Unlock()
	if err != nil {
		return false, op.activityError(err)
	}
	if !sameHandler(op.given.LogHandler, changing.LogHandler) {
		return false, fmt.Errorf("starting operator %q: a handler of OnStartup changed LogHandler, which is in use "+
			"already: give it to kopf.New", op.name)
	}
	op.given, op.started = changing.clone(), true
	return true, nil
}
