package kopf

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/activities"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
)

// OnProbe registers a handler that tells something of the health of the operator, such as whether its database answers.
// What it returns must be a value that encoding/json takes; nil is left out. Kopf: on.probe.
//
// # Flow
//
// The probes are called one after another, in the order of registration, when somebody asks: under [Main] with the flag
// --liveness, the answer is a JSON object of their results by their ids. Either way they are a check of the manager's
// health, "<operator>/probes", which is served where the manager serves them. Results are kept for 10 seconds, and all
// who ask at the same time wait for the same calls. Before the startup has succeeded, none is called.
//
// # Errors
//
// A probe that fails for good fails the answer, with status 500 and its error; the next one who asks has all probes
// called again. A result that cannot be encoded is such a failure. Other errors have the probe called again after a
// delay, a minute by default, while who asks waits: give [Errors] or [Retries] to probes that shall fail at once. Who
// has waited for 10 seconds is told which probe is not finished, with status 500. The probes go on meanwhile; a
// [Timeout] ends them.
func (op *Operator) OnProbe(
	id string, fn func(ctx context.Context, a *Activity) (any, error), opts ...activityOption,
) {
	op.act("OnProbe", activities.Probe, id, opts, caller(fn == nil, func(
		ctx context.Context, call *handlers.Invocation,
	) (any, error) {
		return encoded(fn(ctx, op.activityOf(call)))
	}))
}

// encoded is a result as JSON, once for all who ask, while nobody else can get at it: so whatever encoding/json does to
// it is an error of the probe.
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

// newProbing runs the probes that are registered at the time of a request. It does not use the logger yet: 30 s after
// the start of a process, controller-runtime prints a stack trace and discards all logs at the first use of a logger
// that the program has not set.
func (op *Operator) newProbing() *activities.Probing {
	return activities.NewProbing(op.logger, func() activities.Activity { return op.activity(activities.Probe) })
}

// addProbes makes a check of the probes, if there are any.
func (op *Operator) addProbes(m ctrl.Manager) error {
	if !op.acts(activities.Probe) {
		return nil
	}
	if err := m.AddHealthzCheck(op.name+"/probes", op.checkProbes); err != nil {
		return err
	}
	if op.started {
		return nil // the program ends them, when all else has ended
	}
	return m.Add(probeStopper{op.probing})
}

// checkProbes is the check. A startup that takes its time is no reason for a restart.
func (op *Operator) checkProbes(r *http.Request) error {
	op.mu.Lock()
	early := op.acts(activities.Startup) && !op.started
	op.mu.Unlock()
	if early {
		return nil
	}
	_, err := op.probing.Ask(r.Context())
	return err
}

// probeStopper ends the probes when the project's manager ends, whoever is the leader.
type probeStopper struct{ probing *activities.Probing }

// NeedLeaderElection is false.
func (probeStopper) NeedLeaderElection() bool { return false }

// Start waits for the end.
func (s probeStopper) Start(ctx context.Context) error {
	<-ctx.Done()
	s.probing.Stop()
	return nil
}
