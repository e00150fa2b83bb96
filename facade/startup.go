package kopf

import (
	"context"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/activities"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
)

// Startup is one call of a handler of the startup.
type Startup struct {
	// Settings are those of the operator, as they were given to [New], with the namespaces and the peering of the
	// flags, and with what the handlers before have changed. What is changed here counts: zeros are the defaults. Kopf:
	// settings.
	Settings *Settings
	// ID is the handler's.
	ID string
	// Retry counts the calls before this one: 0 at the first one. Kopf: retry.
	Retry int
	// Started is when the startup has begun: time.Since(s.Started) is Kopf's runtime. Kopf: started.
	Started time.Time
	// Client reads and writes objects with the operator's name as the field manager, such as for CRDs of the operator.
	// Under [Main] and [Operator.Run], it has no cache, and logs in when it is used first: a startup that does not use
	// it sends no request. It may be used later, too. In a manager that the project makes, it is the one that handlers
	// have, see [Change].
	Client client.Client
	// Live reads what the API server has now, past all caches.
	APIReader client.Reader
}

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
	id string, fn func(ctx context.Context, s *Startup) error, opts ...ActivityOption,
) {
	op.act("OnStartup", activities.Startup, id, opts, caller(fn == nil, func(
		ctx context.Context, call *handlers.Invocation,
	) (any, error) {
		s := &Startup{ID: call.Handler.ID, Retry: call.Retry, Started: call.Started, Settings: op.changing}
		s.Client, s.APIReader = op.ownClients()
		return nil, fn(ctx, s)
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
