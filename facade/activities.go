package kopf

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/registry"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/serving"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/activities"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
)

// activityOption is an option of OnStartup, OnCleanup, OnLogin and OnProbe.
type activityOption interface {
	Option
	activityOption()
}

func (option) activityOption() {}

// Activity is one call of a handler of OnStartup, OnCleanup, OnLogin or OnProbe. The logger is log.FromContext(ctx).
type Activity struct {
	// ID is the id of the handler.
	ID string
	// Retry counts earlier calls in the same activity. Kopf: retry.
	Retry int
	// Started is when the activity began. Kopf: started; runtime is time.Since(a.Started).
	Started time.Time
	// Settings can be changed in OnStartup. Kopf: settings.
	Settings *Settings
	// Client acts as the operator. Under [Main] and [Operator.Run], its first use logs in. It is nil in OnLogin.
	Client client.Client
	// APIReader has no cache. It is nil in OnLogin.
	APIReader client.Reader

	cluster serving.Cluster // that of the flags
}

// activityOf returns the argument of a cleanup handler or a probe.
func (op *Operator) activityOf(call *handlers.Invocation) *Activity {
	a := op.loginOf(call)
	a.Client, a.APIReader = op.ownClients()
	return a
}

// loginOf returns the argument of a login handler.
func (op *Operator) loginOf(call *handlers.Invocation) *Activity {
	op.registry.Lock()
	defer op.registry.Unlock()
	settings := op.settings.values.clone()
	return &Activity{
		ID: call.Handler.ID, Retry: call.Retry, Started: call.Started, Settings: &settings, cluster: op.flags.Cluster,
	}
}

// ownClients are the clients of handlers. In a program they are those of the startup until the manager exists.
func (op *Operator) ownClients() (client.Client, client.Reader) {
	op.registry.Lock()
	defer op.registry.Unlock()
	if op.clients.client == nil && op.late != nil {
		return op.late, op.late
	}
	return op.clients.client, op.clients.live
}

// acting is the function of an activity with its types erased.
type acting = func(ctx context.Context, call *handlers.Invocation) (any, error)

// caller is nil for a function that is missing.
func caller(missing bool, call acting) acting {
	if missing {
		return nil
	}
	return call
}

// act registers a handler of an activity.
func (op *Operator) act(
	verb, activity, id string, opts []activityOption, call acting, problems ...error,
) {
	where := registry.Location()
	if op == nil {
		registry.AddOwnerless(fmt.Errorf("%s(%q): %w", verb, id, errNoOperator))
		return
	}
	h := &handlers.Handler{
		ID: id, Family: handlers.Acting, Location: where,
		Activity: activity, Act: call, Often: activity == activities.Probe,
	}
	_, wrong := applyOptions(h, asOptions(opts))
	problems = slices.Concat(problems, checkHandler(id, call == nil), wrong)
	op.registry.RegisterActivity(verb, h, problems)
}

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
			ID: call.Handler.ID, Retry: call.Retry, Started: call.Started, Settings: op.changing,
			cluster: op.flags.Cluster,
		}
		op.registry.Unlock()
		a.Client, a.APIReader = op.ownClients()
		return nil, fn(ctx, a)
	}))
}

// OnCleanup registers a handler that is called when all others have ended; not after a failed startup, a crash or a
// lost lease. A permanent failure, or passing [Settings].CleanupTimeout, results in exit code 1. Kopf: on.cleanup.
func (op *Operator) OnCleanup(
	id string, fn func(ctx context.Context, a *Activity) error, opts ...activityOption,
) {
	op.act("OnCleanup", activities.Cleanup, id, opts, caller(fn == nil, func(
		ctx context.Context, call *handlers.Invocation,
	) (any, error) {
		return nil, fn(ctx, op.activityOf(call))
	}))
}

// OnProbe registers a handler whose result is served as JSON at --liveness. Results are kept for 10 seconds. A
// permanent failure, or a call of more than 10 seconds, results in status 500. Other errors are retried, so set
// [Errors] or [Retries] to fail at once. See docs/health.md. Kopf: on.probe.
func (op *Operator) OnProbe(
	id string, fn func(ctx context.Context, a *Activity) (any, error), opts ...activityOption,
) {
	op.act("OnProbe", activities.Probe, id, opts, caller(fn == nil, func(
		ctx context.Context, call *handlers.Invocation,
	) (any, error) {
		return encoded(fn(ctx, op.activityOf(call)))
	}))
}

// encoded encodes a result to JSON once for all requests. Only the probe holds the result at this point, so an encoding
// error is an error of the probe.
func encoded(result any, err error) (any, error) {
	if result == nil || err != nil {
		return nil, err
	}
	data, err := json.Marshal(result)
	if err != nil {
		return nil, Permanent(fmt.Errorf("the result cannot be encoded: %w", err))
	}
	return json.RawMessage(data), nil
}
