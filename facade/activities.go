package facade

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/activities"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
)

// ActivityOption is an option of OnStartup, OnCleanup, OnLogin and OnProbe.
type ActivityOption interface {
	Option
	activityOption()
}

func (option) activityOption() {}

// Activity is one call of a handler that has no object, but is for the operator as a whole. The logger is in the
// context: log.FromContext(ctx).
type Activity struct {
	// ID is the handler's.
	ID string
	// Retry counts the calls before this one in the same activity: 0 at the first one. Kopf: retry.
	Retry int
	// Started is when the activity has begun: time.Since(a.Started) is Kopf's runtime. Kopf: started.
	Started time.Time
}

// Startup is one call of a handler of the startup.
type Startup struct {
	// Settings are those of the operator, as they were given to [New], with the namespaces of the flags -n and -A, and
	// with what the handlers before have changed. What is changed here counts: zeros are the defaults. Kopf: settings.
	Settings *Settings
	// ID is the handler's.
	ID string
	// Retry counts the calls before this one: 0 at the first one. Kopf: retry.
	Retry int
	// Started is when the startup has begun: time.Since(s.Started) is Kopf's runtime. Kopf: started.
	Started time.Time
}

// OnStartup registers a handler that is called before all else: for the settings, and for what the other handlers need,
// such as pools of connections. They get it in plain Go: in a closure, or in a struct whose methods they are. Kopf:
// on.startup.
//
// # Flow
//
// The handlers of the startup are called one after another, in the order of registration; those that want another
// attempt are called again when their delays are over. Under [Main], nothing is asked of the API server before all have
// succeeded, and nothing else of the program is started. Under [Operator.SetupWithManager], the handlers of this
// operator and their watches wait for it, and nothing else does; with leader election, it comes when the process leads.
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
		ctx context.Context, call *handlers.Call,
	) (any, error) {
		return nil, fn(ctx, &Startup{
			ID: call.Handler.ID, Retry: call.Retry, Started: call.Started, Settings: &op.given,
		})
	}), errNotServed)
}

// OnCleanup registers a handler that is called after all else, when all other handlers have ended. Kopf: on.cleanup.
//
// # Flow
//
// The handlers of the cleanup are called as those of the startup are, whatever the operator ends for, if the startup
// has succeeded; not after a crash, nor if the lease of the leader is lost.
//
// # Errors
//
// A handler that fails for good, or is not finished in time, see [ProcessSettings], makes the program exit with 1. In a
// given manager, which reports no errors of its end, the log is all there is.
func (op *Operator) OnCleanup(
	id string, fn func(ctx context.Context, a *Activity) error, opts ...ActivityOption,
) {
	op.act("OnCleanup", activities.Cleanup, id, opts, caller(fn == nil, func(
		ctx context.Context, call *handlers.Call,
	) (any, error) {
		return nil, fn(ctx, activityOf(call))
	}), errNotServed)
}

func activityOf(call *handlers.Call) *Activity {
	return &Activity{ID: call.Handler.ID, Retry: call.Retry, Started: call.Started}
}

// acting is the function of an activity with its types erased.
type acting = func(ctx context.Context, call *handlers.Call) (any, error)

// caller is nil for a function that is missing.
func caller(missing bool, call acting) acting {
	if missing {
		return nil
	}
	return call
}

// act registers a handler of an activity.
func (op *Operator) act(
	verb, activity, id string, opts []ActivityOption, call acting, problems ...error,
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
	return slices.ContainsFunc(op.activities, func(h *handlers.Handler) bool {
		return h.Activity == activity
	})
}

// actors are the handlers of an activity, in the order of registration.
func (op *Operator) actors(activity string, metrics *adapters.Metrics) (all []*adapters.Handler) {
	for _, h := range op.activities {
		if h.Activity == activity {
			all = append(all, adapters.New(h, metrics))
		}
	}
	return all
}
