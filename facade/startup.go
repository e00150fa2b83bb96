package kopf

import (
	"context"
	"fmt"

	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/activities"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
)

// OnStartup registers a handler that is called before all else: for the settings, and for what the other handlers need,
// such as pools of connections. They get it in plain Go: in a closure, or in a struct whose methods they are. Kopf:
// on.startup.
//
// # Flow
//
// The handlers of the startup are called one after another, in the order of registration; those that want another
// attempt are called again when their delays are over. Under [Main], nothing is asked of the API server before all have
// succeeded, unless they do so by their Client, and nothing else of the program is started. Under
// [Operator.SetupWithManager], the handlers of this operator and their watches wait for it, and nothing else does; with
// leader election, it comes when the process leads, or, with handlers of admission, in every process at once.
//
// # Errors
//
// They mean what they do for handlers of changes, see [ChangeFunc]: an ordinary error is retried after a minute,
// without a limit. A handler that fails for good ends the program with its error, or the manager. Then nothing is
// cleaned up.
func (op *Operator) OnStartup(
	id string, fn func(ctx context.Context, a *Activity) error, opts ...activityOption,
) {
	op.act("OnStartup", activities.Startup, id, opts, caller(fn == nil, func(
		ctx context.Context, call *handlers.Invocation,
	) (any, error) {
		a := &Activity{ID: call.Handler.ID, Retry: call.Retry, Started: call.Started, Settings: op.changing}
		a.Client, a.APIReader = op.ownClients()
		return nil, fn(ctx, a)
	}))
}

// startUp calls the handlers of the startup, and takes over the settings that they leave. It returns false if the
// operator must not go on: with an error, or because it is told to stop.
func (op *Operator) startUp(ctx context.Context) (ready bool, err error) {
	op.mu.Lock()
	changing := op.given.clone()
	op.changing = &changing
	if op.stage == registering {
		op.stage = starting
	}
	op.mu.Unlock()
	_, err = op.activity(activities.Startup).Run(logf.IntoContext(ctx, op.logger()))
	op.mu.Lock()
	defer op.mu.Unlock()
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
