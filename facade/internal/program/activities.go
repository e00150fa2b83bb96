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

	"github.com/kopf-runtime/kopf-runtime/facade/internal/activities"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/credentials"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/defaults"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/registry"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/serving"
	"github.com/kopf-runtime/kopf-runtime/internal/execution"
	"github.com/kopf-runtime/kopf-runtime/internal/metrics"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
)

// DefaultCleanupTimeout is the default of CleanupTimeout. It equals the default grace period of a pod in Kubernetes.
const DefaultCleanupTimeout = 30 * time.Second

// ActivityRunner calls the handlers of the activities: startup, cleanup, login and probes.
type ActivityRunner struct {
	// Probing calls the probes and caches their results. The health check and the liveness endpoint share it.
	Probing *activities.Probing

	// operator is the name of the operator, which errors contain.
	operator string
	registry *registry.HandlerRegistry
	// state returns the current settings. Call it with the lock of the registry.
	state func() ActivityState
}

// ActivityState contains the settings that activities depend on. They are read for each call, because a startup handler
// can change them.
type ActivityState struct {
	Backoff, CleanupTimeout time.Duration
	Metrics                 prometheus.Registerer
	// HasStarted is true after a successful startup.
	HasStarted bool
}

// NewActivityRunner returns the runner of an operator. The runner calls state with the lock of the registry held.
//
// The probes get the logger as a function, so that the logger of the registry is not used here: 30 s after the start of
// a process, controller-runtime prints a stack trace and discards all logs at the first use of a logger that the
// program has not set.
func NewActivityRunner(operator string, r *registry.HandlerRegistry, state func() ActivityState) *ActivityRunner {
	a := &ActivityRunner{operator: operator, registry: r, state: state}
	a.Probing = activities.NewProbing(func() logr.Logger { return r.Log() }, func() activities.ActivityHandlers {
		return a.buildActivity(activities.Probe)
	})
	return a
}

// buildActivity returns one activity with its handlers, in the order of registration.
func (a *ActivityRunner) buildActivity(name string) activities.ActivityHandlers {
	a.registry.Lock()
	defer a.registry.Unlock()
	state := a.state()
	activity := activities.ActivityHandlers{Name: name, Backoff: state.Backoff}
	measured, err := metrics.New(a.operator, state.Metrics)
	if err != nil {
		measured = nil // the engine registers the same metrics and reports the error
	}
	for _, h := range a.registry.Activities {
		if h.Activity == name {
			activity.Handlers = append(activity.Handlers, adapters.New(h, measured))
		}
	}
	return activity
}

// describeFailure adds the name of the operator to an error of an activity. It returns nil for an activity that was
// interrupted because the operator stops: that is not a failure, unless a handler failed or had to be abandoned.
func (a *ActivityRunner) describeFailure(err error) error {
	var interrupted *activities.InterruptedError
	if errors.As(err, &interrupted) && interrupted.IsOnlyInterrupted() {
		return nil
	}
	return fmt.Errorf("operator %q: %w", a.operator, err)
}

// StartUp calls the startup handlers. It returns false if the operator must not continue: with an error if a handler
// failed, without one if the operator is stopping.
func (a *ActivityRunner) StartUp(ctx context.Context) (ready bool, err error) {
	_, err = a.buildActivity(activities.Startup).Run(logf.IntoContext(ctx, a.registry.Log()))
	if err != nil {
		return false, a.describeFailure(err)
	}
	return true, nil
}

// CleanUp calls the cleanup handlers, for CleanupTimeout at most. It ignores the end of the context, because the
// context of an exiting operator has usually ended already.
func (a *ActivityRunner) CleanUp(ctx context.Context) error {
	a.registry.Lock()
	// The startup may have changed the timeout, so it is read now.
	limit := a.state().CleanupTimeout
	a.registry.Unlock()
	ctx = logf.IntoContext(context.WithoutCancel(ctx), a.registry.Log())
	if limit != defaults.Never {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, limit, cleanupTimeoutError(limit))
		defer cancel()
	}
	// Unlike in the other activities, an interruption is an error here: it means that the timeout was too short.
	if _, err := a.buildActivity(activities.Cleanup).Run(ctx); err != nil {
		return fmt.Errorf("operator %q: %w", a.operator, err)
	}
	return nil
}

// cleanupTimeoutError is the cause of the context when CleanupTimeout cancels the cleanup handlers.
type cleanupTimeoutError time.Duration

// Error names the setting to change.
func (t cleanupTimeoutError) Error() string {
	return fmt.Sprintf("it took longer than %s (CleanupTimeout)", time.Duration(t))
}

// Unwrap returns ErrExiting, so the interrupted attempt does not count.
func (cleanupTimeoutError) Unwrap() error { return execution.ErrExiting }

// LogIn returns the credentials by the ids of the login handlers. Without such handlers, it finds the cluster as
// kubectl does, or as pods do. A handler without credentials has a nil entry.
func (a *ActivityRunner) LogIn(ctx context.Context, to serving.ClusterConfig) (map[string]*credentials.Info, error) {
	if !a.registry.HasActivityHandlers(activities.Login) {
		info, err := credentials.Login(to.Kubeconfig, to.Context)
		return map[string]*credentials.Info{"built-in": info}, err
	}
	login := a.buildActivity(activities.Login)
	results, err := login.Run(ctx)
	if err != nil {
		// An interruption is not a failure of the login, but the caller still needs an error: there are no credentials.
		if err := a.describeFailure(err); err != nil {
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

// AddProbes adds a health check to the manager if there are probes. In a manager of the project, it also stops the
// probes when the manager stops. A program stops them itself, after everything else.
func (a *ActivityRunner) AddProbes(m ctrl.Manager, program bool) error {
	if !a.registry.HasActivityHandlers(activities.Probe) {
		return nil
	}
	if err := m.AddHealthzCheck(a.operator+"/probes", a.checkProbes); err != nil || program {
		return err
	}
	return m.Add(onEachReplica(func(ctx context.Context) error {
		<-ctx.Done()
		a.Probing.StopProbing()
		return nil
	}))
}

// checkProbes is the health check. It passes during the startup, because a long startup must not make the kubelet
// restart the pod.
func (a *ActivityRunner) checkProbes(r *http.Request) error {
	// Requests come in other goroutines than the startup, which sets Started and may change the settings.
	a.registry.Lock()
	isEarly := a.registry.HasActivityHandlers(activities.Startup) && !a.state().HasStarted
	a.registry.Unlock()
	if isEarly {
		return nil
	}
	// This limits the time, and concurrent requests share one run of the probes.
	_, err := a.Probing.AwaitResults(r.Context())
	return err
}
