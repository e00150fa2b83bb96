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

// newProbing runs the probes that are registered at the time of a request. It does not use the logger yet: 30 s after
// the start of a process, controller-runtime prints a stack trace and discards all logs at the first use of a logger
// that the program has not set.
func (op *Operator) newProbing() *activities.Probing {
	return activities.NewProbing(op.logger, func() activities.Activity { return op.activity(activities.Probe) })
}

// addProbes adds a health check for the probes, if there are any.
func (op *Operator) addProbes(m ctrl.Manager) error {
	if !op.registry.Acts(activities.Probe) {
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

// checkProbes is the health check. It passes during the startup, as a long startup must not cause a restart.
func (op *Operator) checkProbes(r *http.Request) error {
	op.registry.Lock()
	early := op.registry.Acts(activities.Startup) && !op.started
	op.registry.Unlock()
	if early {
		return nil
	}
	_, err := op.probing.Ask(r.Context())
	return err
}

// probeStopper ends the probes when the project's manager ends, in every replica.
type probeStopper struct{ probing *activities.Probing }

// NeedLeaderElection is false.
func (probeStopper) NeedLeaderElection() bool { return false }

// Start waits for the end.
func (s probeStopper) Start(ctx context.Context) error {
	<-ctx.Done()
	s.probing.Stop()
	return nil
}
