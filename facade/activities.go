package kopf

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/registry"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/serving"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/activities"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/metrics"
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
		ID: call.Handler.ID, Retry: call.Retry, Started: call.Started, Settings: &settings, cluster: op.cluster,
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

// activity has the handlers of one activity, in the order of registration.
func (op *Operator) activity(name string) activities.Activity {
	op.registry.Lock()
	defer op.registry.Unlock()
	activity := activities.Activity{Name: name, Backoff: op.settings.backoff()}
	measured, err := metrics.New(op.name, op.metricsRegistry())
	if err != nil {
		measured = nil // the engine registers the same ones and reports the error
	}
	for _, h := range op.registry.Activities {
		if h.Activity == name {
			activity.Handlers = append(activity.Handlers, adapters.New(h, measured))
		}
	}
	return activity
}

// activityError adds the name of the operator. An activity that was interrupted by the end of the operator has not
// failed, unless a handler did not end.
func (op *Operator) activityError(err error) error {
	var interrupted *activities.InterruptedError
	if errors.As(err, &interrupted) && interrupted.Graceful() {
		return nil
	}
	return fmt.Errorf("operator %q: %w", op.name, err)
}
