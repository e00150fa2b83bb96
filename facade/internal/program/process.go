package program

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/commandline"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/credentials"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/serving"
)

// RunnableOperator is the part of an operator that a process uses.
type RunnableOperator interface { //nolint:interfacebloat // a process uses all of it
	// Settings are those of the manager, as they are now. They come with all errors of registrations.
	Settings() (serving.Settings, error)
	// Apply takes over the flags. They win over the settings, but not over the startup.
	Apply(given commandline.Given)
	// UseClient gives the startup a client.
	UseClient(late client.Client)
	// StartUp may change the settings. It returns false if the operator must not continue.
	StartUp(ctx context.Context) (ready bool, err error)
	CleanUp(ctx context.Context) error
	// SetupWithManager adds the operator to the manager. The default namespace is that of the credentials.
	SetupWithManager(m ctrl.Manager, defaultNamespace func() string) error
	// ExitTimeout limits the exit of the process.
	ExitTimeout() time.Duration
}

// Process runs an operator with a manager of its own. The command line and Run use it.
type Process struct {
	RunnableOperator

	Name string
	Log  func() logr.Logger
}

var _ commandline.Operator = Process{}

// Around calls serve between the startup and the cleanup.
func (p Process) Around(ctx context.Context, given commandline.Given, serve func() error) error {
	limit := serving.WatchExit(ctx, p.Log(), p.ExitTimeout)
	defer limit.Stop()
	p.Apply(given)
	own, err := p.Settings()
	if err == nil {
		err = p.useLateClient(ctx, own, given.Cluster)
	}
	if err != nil {
		return err
	}
	return p.around(ctx, serve, limit.Begin)
}

// useLateClient gives the startup a client, which logs in when it is used first.
func (p Process) useLateClient(ctx context.Context, settings serving.Settings, to serving.Cluster) error {
	late, err := settings.LateClient(ctx, p.Name, to)
	if err != nil {
		return fmt.Errorf("operator %q: making the client of the startup: %w", p.Name, err)
	}
	p.UseClient(client.WithFieldOwner(late, p.Name))
	return nil
}

// around calls serve between the startup and the cleanup, and calls returned after serve.
func (p Process) around(ctx context.Context, serve func() error, returned func()) error {
	ready, err := p.StartUp(ctx)
	if !ready {
		return err
	}
	err = serve()
	returned()
	return errors.Join(err, p.CleanUp(ctx))
}

// RunSettings are those of Run, as package facade documents them.
type RunSettings struct {
	Config              *rest.Config
	Kubeconfig, Context string
	Log                 logr.Logger
	Metrics             prometheus.Registerer

	MetricsBindAddress, HealthProbeBindAddress, DebugBindAddress string

	Console, Profiling bool
	Liveness           string
}

// Resolve returns the mistake, and chooses the logger.
func (s *RunSettings) Resolve(handler slog.Handler, logsIn bool) error {
	if part := s.inspection().Unserved(); part != "" {
		return fmt.Errorf("%s: it is served at the DebugBindAddress: set it", part)
	}
	if s.Config != nil && (s.Kubeconfig != "" || s.Context != "" || logsIn) {
		return errors.New("the Config says which cluster, so there must be neither Kubeconfig, nor Context, nor " +
			"OnLogin: give one of them")
	}
	switch {
	case s.Log.GetSink() != nil:
	case handler != nil:
		s.Log = logr.FromSlogHandler(handler)
	default:
		s.Log = logf.Log
	}
	return nil
}

// inspection is the debug server.
func (s *RunSettings) inspection() commandline.Inspection {
	return commandline.Inspection{Address: s.DebugBindAddress, Console: s.Console, Profiling: s.Profiling}
}

// Run runs the operator until the context ends, without a command line, signals and exit.
func (p Process) Run(ctx context.Context, given RunSettings) error {
	settings := func() (serving.Settings, error) {
		now, err := p.Settings()
		if given.Config != nil {
			now.Login = func(context.Context, serving.Cluster) (map[string]*credentials.Info, error) {
				return map[string]*credentials.Info{"config": {Config: rest.CopyConfig(given.Config)}}, nil
			}
		}
		return now, err
	}
	first, err := settings() // before anything is started
	if err != nil {
		return err
	}
	options := serving.Options{
		Name: p.Name, Log: given.Log, Metrics: given.MetricsBindAddress, Health: given.HealthProbeBindAddress,
		Cluster:  serving.Cluster{Kubeconfig: given.Kubeconfig, Context: given.Context},
		Embedded: true, SetUp: p.SetupWithManager,
	}
	if err := p.useLateClient(ctx, first, options.Cluster); err != nil {
		return err
	}
	if given.Liveness != "" {
		endpoint, err := serving.ParseLiveness(given.Liveness)
		if err != nil {
			return fmt.Errorf("running operator %q: Liveness: %w", p.Name, err)
		}
		options.Liveness = &endpoint
	}
	p.Apply(commandline.Given{
		Inspection: given.inspection(), Metrics: given.MetricsBindAddress, Health: given.HealthProbeBindAddress,
		Cluster: options.Cluster,
	})
	return p.around(ctx, func() error {
		now, err := settings()
		if err != nil {
			return err
		}
		return serving.Run(ctx, now, options)
	}, func() {})
}
