package program

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	ctrl "sigs.k8s.io/controller-runtime"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/connection"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/credentials"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/defaults"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/registry"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/serving"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/activities"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/metrics"
)

// DefaultCleanup is the default of CleanupTimeout: the default grace period of a pod in Kubernetes.
const DefaultCleanup = 30 * time.Second

// ActivityRunner calls the handlers of the startup, the cleanup, logins and probes.
type ActivityRunner struct {
	// Probing calls the probes.
	Probing *activities.Probing

	operator string
	registry *registry.HandlerRegistry
	state    func() ActivityState
}

// ActivityState is what activities depend on at the time of a call.
type ActivityState struct {
	Backoff, CleanupTimeout time.Duration
	Metrics                 prometheus.Registerer
	// Started is true after a successful startup.
	Started bool
}

// NewActivityRunner returns the runner of an operator. The state is read with the lock of the registry. The logger of
// the registry is not used yet: 30 s after the start of a process, controller-runtime prints a stack trace and discards
// all logs at the first use of a logger that the program has not set.
func NewActivityRunner(operator string, r *registry.HandlerRegistry, state func() ActivityState) *ActivityRunner {
	a := &ActivityRunner{operator: operator, registry: r, state: state}
	a.Probing = activities.NewProbing(func() logr.Logger { return r.Log() }, func() activities.Activity {
		return a.activity(activities.Probe)
	})
	return a
}

// activity has the handlers of one activity, in the order of registration.
func (a *ActivityRunner) activity(name string) activities.Activity {
	a.registry.Lock()
	defer a.registry.Unlock()
	state := a.state()
	activity := activities.Activity{Name: name, Backoff: state.Backoff}
	measured, err := metrics.New(a.operator, state.Metrics)
	if err != nil {
		measured = nil // the engine registers the same ones and reports the error
	}
	for _, h := range a.registry.Activities {
		if h.Activity == name {
			activity.Handlers = append(activity.Handlers, adapters.New(h, measured))
		}
	}
	return activity
}

// failure adds the name of the operator. An activity that was interrupted by the end of the operator has not failed,
// unless a handler did not end.
func (a *ActivityRunner) failure(err error) error {
	var interrupted *activities.InterruptedError
	if errors.As(err, &interrupted) && interrupted.Graceful() {
		return nil
	}
	return fmt.Errorf("operator %q: %w", a.operator, err)
}

// StartUp calls the startup handlers. It returns false if the operator must not continue: with an error, or because the
// operator is stopping.
func (a *ActivityRunner) StartUp(ctx context.Context) (ready bool, err error) {
	_, err = a.activity(activities.Startup).Run(logf.IntoContext(ctx, a.registry.Log()))
	if err != nil {
		return false, a.failure(err)
	}
	return true, nil
}

// CleanUp calls the cleanup handlers. The operator is exiting: its context may have ended.
func (a *ActivityRunner) CleanUp(ctx context.Context) error {
	a.registry.Lock()
	limit := a.state().CleanupTimeout
	a.registry.Unlock()
	ctx = logf.IntoContext(context.WithoutCancel(ctx), a.registry.Log())
	if limit != defaults.Never {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, limit, cleanupTimeoutError(limit))
		defer cancel()
	}
	if _, err := a.activity(activities.Cleanup).Run(ctx); err != nil {
		return fmt.Errorf("operator %q: %w", a.operator, err)
	}
	return nil
}

// cleanupTimeoutError is the cause with which cleanup handlers are cancelled.
type cleanupTimeoutError time.Duration

func (t cleanupTimeoutError) Error() string {
	return fmt.Sprintf("it took longer than %s (CleanupTimeout)", time.Duration(t))
}

// Unwrap returns ErrExiting, so the attempt does not count.
func (cleanupTimeoutError) Unwrap() error { return execution.ErrExiting }

// LogIn calls the login handlers. Without any, it finds the cluster as kubectl does, or as pods do.
func (a *ActivityRunner) LogIn(ctx context.Context, to serving.Cluster) (map[string]*credentials.Info, error) {
	if !a.registry.Acts(activities.Login) {
		info, err := connection.Login(to.Kubeconfig, to.Context)
		return map[string]*credentials.Info{"built-in": info}, err
	}
	login := a.activity(activities.Login)
	results, err := login.Run(ctx)
	if err != nil {
		if err := a.failure(err); err != nil {
			return nil, err
		}
		return nil, fmt.Errorf("operator %q: login: %w", a.operator, ctx.Err()) // it is stopping
	}
	infos := map[string]*credentials.Info{}
	for _, h := range login.Handlers {
		infos[h.Description.ID], _ = results[h.Description.ID].(*credentials.Info) // nil without credentials
	}
	return infos, nil
}

// AddProbes adds a health check for the probes, if there are any. A program ends them itself, after all else.
func (a *ActivityRunner) AddProbes(m ctrl.Manager, program bool) error {
	if !a.registry.Acts(activities.Probe) {
		return nil
	}
	if err := m.AddHealthzCheck(a.operator+"/probes", a.checkProbes); err != nil || program {
		return err
	}
	return m.Add(probeStopper{a.Probing})
}

// checkProbes is the health check. It passes during the startup, as a long startup must not cause a restart.
func (a *ActivityRunner) checkProbes(r *http.Request) error {
	a.registry.Lock()
	isEarly := a.registry.Acts(activities.Startup) && !a.state().Started
	a.registry.Unlock()
	if isEarly {
		return nil
	}
	_, err := a.Probing.Ask(r.Context())
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
