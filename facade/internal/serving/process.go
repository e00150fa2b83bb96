package serving

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/credentials"
)

// RunnableOperator is the part of an operator that a process and the command line use. It is an interface, so that they
// can be tested without a cluster.
type RunnableOperator interface { //nolint:interfacebloat // a process uses all of it
	// Settings returns the current settings of the manager, with all errors of registrations.
	Settings() (ManagerSettings, error)
	// Apply sets the flags. They override the settings, but the startup handlers override them.
	Apply(given RunFlags)
	// UseClient sets the client of the startup handlers.
	UseClient(late client.Client)
	// StartUp calls the startup handlers, which may change the settings. It returns false if the operator must not
	// continue.
	StartUp(ctx context.Context) (ready bool, err error)
	// CleanUp calls the cleanup handlers.
	CleanUp(ctx context.Context) error
	// SetupWithManager adds the operator to the manager. The default namespace is that of the credentials.
	SetupWithManager(m ctrl.Manager, defaultNamespace func() string) error
	// ExitTimeout returns the limit of the exit of the process.
	ExitTimeout() time.Duration
}

// Process runs an operator with its own manager, for the command line and for Run of package facade.
type Process struct {
	RunnableOperator

	// Name is the name of the operator. It is also its user agent.
	Name string
	// Log returns the logger of the operator. It is a function, because the command line sets the logger late.
	Log func() logr.Logger
}

// RunOptions configure one run of a process.
type RunOptions struct {
	// RunFlags override the settings of the operator.
	RunFlags

	// ManagerLog gets all log lines of the manager.
	ManagerLog logr.Logger
	// Config is the connection; nil logs in by the settings.
	Config *rest.Config
	// Embedded is true if the process contains more than this operator: other controllers may have the same names, and
	// the time of the exit is not limited.
	Embedded bool
}

// Run runs the operator until the context ends, which is not an error: startup, login, manager, cleanup. The cleanup
// only runs after a successful startup, but also after an error of the manager.
func (p Process) Run(ctx context.Context, o RunOptions) error {
	startExit := func() {}
	if !o.Embedded {
		// A process that hangs is killed. The limit starts when the context ends, and also when serve returns.
		limit := watchExit(ctx, p.Log(), p.ExitTimeout)
		defer limit.stop()
		startExit = limit.startCountdown
	}
	p.Apply(o.RunFlags)
	// The settings depend on the flags.
	settings, err := p.settingsFor(o)
	if err == nil {
		err = p.useLateClient(ctx, settings, o.Cluster)
	}
	if err != nil {
		return err
	}
	if ready, err := p.StartUp(ctx); !ready {
		return err
	}
	err = p.serve(ctx, o)
	startExit()
	// An error of the cleanup must not hide the error of serve.
	return errors.Join(err, p.CleanUp(ctx))
}

// settingsFor returns the current settings. A given connection replaces the login.
func (p Process) settingsFor(o RunOptions) (ManagerSettings, error) {
	settings, err := p.Settings()
	if o.Config != nil {
		settings.Login = func(context.Context, ClusterConfig) (map[string]*credentials.Info, error) {
			return map[string]*credentials.Info{"config": {Config: rest.CopyConfig(o.Config)}}, nil
		}
	}
	return settings, err
}

// useLateClient gives the startup handlers a client without a cache, which logs in at its first request. A startup that
// does not use it needs no cluster. An error of the login is returned by the request.
func (p Process) useLateClient(ctx context.Context, settings ManagerSettings, to ClusterConfig) error {
	config := credentials.ConnectLazily(ctx, settings.credentialOptions(p.Name, to, func(error) {}))
	late, err := client.New(rest.AddUserAgent(config, p.Name), client.Options{Scheme: settings.Scheme})
	if err != nil {
		return fmt.Errorf("operator %q: making the client of the startup: %w", p.Name, err)
	}
	p.UseClient(client.WithFieldOwner(late, p.Name))
	return nil
}
