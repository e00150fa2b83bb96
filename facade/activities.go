package kopf

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

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

// Activity is one call of a handler that is not for an object but for the operator as a whole: of OnStartup, OnCleanup,
// OnLogin or OnProbe. The logger is in the context: log.FromContext(ctx).
type Activity struct {
	// ID is the id of the handler.
	ID string
	// Retry counts the calls before this one in the same activity: 0 at the first one. Kopf: retry.
	Retry int
	// Started is when the activity has begun: time.Since(a.Started) is Kopf's runtime. Kopf: started.
	Started time.Time
	// Settings are those of the operator. In OnStartup, they are as given to [New], with the namespaces and the peering
	// of the flags, and handlers can change them; zero values become the defaults. In other activities, they are a copy
	// of what is in use. Kopf: settings.
	Settings *Settings
	// Client reads and writes objects with the operator's name as the field manager. Under [Main] and [Operator.Run], it
	// logs in when it is first used: a startup that does not use it sends no request. In a manager that the project
	// makes, it is that of the handlers, see [Change]. It is nil in OnLogin.
	Client client.Client
	// APIReader reads directly from the API server. It is nil in OnLogin.
	APIReader client.Reader

	cluster serving.Cluster // that of the flags
}

// activityOf is what a function of the cleanup, or a probe, gets.
func (op *Operator) activityOf(call *handlers.Invocation) *Activity {
	a := op.loginOf(call)
	a.Client, a.APIReader = op.ownClients()
	return a
}

// loginOf is what a function of a login gets.
func (op *Operator) loginOf(call *handlers.Invocation) *Activity {
	op.mu.Lock()
	defer op.mu.Unlock()
	settings := op.settings.values.clone()
	return &Activity{
		ID: call.Handler.ID, Retry: call.Retry, Started: call.Started, Settings: &settings, cluster: op.cluster,
	}
}

// ownClients are those of handlers; before there are any, in a program, those of the startup.
func (op *Operator) ownClients() (client.Client, client.Reader) {
	op.mu.Lock()
	defer op.mu.Unlock()
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
	where := location()
	if op == nil {
		addOwnerless(fmt.Errorf("%s(%q): %w", verb, id, errNoOperator))
		return
	}
	h := &handlers.Handler{
		ID: id, Family: handlers.Acting, Location: where,
		Activity: activity, Act: call, Often: activity == activities.Probe,
	}
	_, wrong := applyOptions(h, asOptions(opts))
	problems = slices.Concat(problems, checkHandler(id, call == nil), wrong)
	op.mu.Lock()
	defer op.mu.Unlock()
	if op.stage != registering {
		problems = append(problems, errors.New("registered after the operator was set up, so it is never called"))
	}
	for _, other := range op.activities {
		if other.ID == id && other.Activity == activity {
			problems = append(problems, fmt.Errorf(
				"the id is taken at %s; give every handler of a verb its own", other.Location,
			))
		}
	}
	for _, problem := range problems {
		op.keepError(where, fmt.Errorf("%s(%q): %w", verb, id, problem))
	}
	op.activities = append(op.activities, h)
}

// acts tells whether the operator has a handler of the activity.
func (op *Operator) acts(activity string) bool {
	return slices.ContainsFunc(op.activities, func(h *handlers.Handler) bool { return h.Activity == activity })
}

// activity has the handlers of one activity, in the order of registration.
func (op *Operator) activity(name string) activities.Activity {
	op.mu.Lock()
	defer op.mu.Unlock()
	activity := activities.Activity{Name: name, Backoff: op.settings.backoff()}
	measured, err := metrics.New(op.name, op.registry())
	if err != nil {
		measured = nil // the engine has the same ones, and tells
	}
	for _, h := range op.activities {
		if h.Activity == name {
			activity.Handlers = append(activity.Handlers, adapters.New(h, measured))
		}
	}
	return activity
}

// activityError names the operator. An activity that ended because the operator is told to stop has not failed, unless
// a handler did not end.
func (op *Operator) activityError(err error) error {
	var interrupted *activities.InterruptedError
	if errors.As(err, &interrupted) && interrupted.Graceful() {
		return nil
	}
	return fmt.Errorf("operator %q: %w", op.name, err)
}
