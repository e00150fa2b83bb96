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

// RunnableOperator is the part of an operator that a process uses. It is an interface, so that a process can be tested
// without a cluster.
type RunnableOperator interface { //nolint:interfacebloat // a process uses all of it
	// Settings returns the current settings of the manager, with all errors of registrations.
	Settings() (serving.ManagerSettings, error)
	// Apply sets the flags. They override the settings, but the startup handlers override them.
	Apply(given commandline.RunFlags)
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

// Process runs an operator with its own manager. The command line and Run use it.
type Process struct {
	RunnableOperator

	// Name is the name of the operator.
	Name string
	// Log returns the logger of the operator. It is a function, because the command line sets the logger late.
	Log func() logr.Logger
}

var _ commandline.OperatorProcess = Process{}

// Around calls serve between the startup and the cleanup. It limits the time of the exit, so a process that hangs is
// killed.
func (p Process) Around(ctx context.Context, given commandline.RunFlags, serve func() error) error {
	// The limit starts when the context ends, and also when serve returns by itself.
	limit := serving.WatchExit(ctx, p.Log(), p.ExitTimeout)
	defer limit.Stop()
	p.Apply(given)
	// The settings depend on the flags.
	own, err := p.Settings()
	if err == nil {
		err = p.useLateClient(ctx, own, given.Cluster)
	}
	if err != nil {
		return err
	}
	return p.runBetweenActivities(ctx, serve, limit.StartCountdown)
}

// useLateClient gives the startup handlers a client, which logs in at its first request. A startup that does not use it
// needs no cluster.
func (p Process) useLateClient(ctx context.Context, settings serving.ManagerSettings, to serving.ClusterConfig) error {
	late, err := settings.LateClient(ctx, p.Name, to)
	if err != nil {
		return fmt.Errorf("operator %q: making the client of the startup: %w", p.Name, err)
	}
	p.UseClient(client.WithFieldOwner(late, p.Name))
	return nil
}

// runBetweenActivities calls serve between the startup and the cleanup, and calls returned after serve. The cleanup
// only runs after a successful startup, but also after an error of serve.
func (p Process) runBetweenActivities(ctx context.Context, serve func() error, returned func()) error {
	ready, err := p.StartUp(ctx)
	if !ready {
		return err
	}
	// An error of the cleanup must not hide the error of serve.
	err = serve()
	returned()
	return errors.Join(err, p.CleanUp(ctx))
}

// ResolvedRunSettings are the settings of Run. Package facade documents them.
type ResolvedRunSettings struct {
	Config              *rest.Config
	Kubeconfig, Context string
	Log                 logr.Logger
	Metrics             prometheus.Registerer

	MetricsBindAddress, HealthProbeBindAddress, DebugBindAddress string

	Console, Profiling bool
	Liveness           string
}

// ResolveDefaults returns an error for settings that exclude each other, and sets the default logger: the handler of
// the settings, or else the logger of controller-runtime.
func (s *ResolvedRunSettings) ResolveDefaults(handler slog.Handler, logsIn bool) error {
	if part := s.inspectionSettings().UnservedPart(); part != "" {
		return fmt.Errorf("%s: it is served at the DebugBindAddress: set it", part)
	}
	// A Config contains the credentials, so every other way to find the cluster would be ignored.
	if s.Config != nil && (s.Kubeconfig != "" || s.Context != "" || logsIn) {
		return errors.New("the Config says which cluster, so there must be neither Kubeconfig, nor Context, nor " +
			"OnLogin: give one of them")
	}
	switch {
	case s.Log.GetSink() != nil:
	case handler != nil:
		// An explicit logger wins over the handler of the settings.
		s.Log = logr.FromSlogHandler(handler)
	default:
		s.Log = logf.Log
	}
	return nil
}

// inspectionSettings returns the settings of the debug server.
func (s *ResolvedRunSettings) inspectionSettings() commandline.Inspection {
	return commandline.Inspection{Address: s.DebugBindAddress, Console: s.Console, Profiling: s.Profiling}
}

// Run runs the operator until the context ends. Unlike the command line, it uses no flags and no signals, and does not
// exit the process or limit the time of the exit. The order is the same: startup, login, manager, cleanup.
func (p Process) Run(ctx context.Context, given ResolvedRunSettings) error {
	// The settings are read twice, before and after the startup. Config replaces the login both times.
	settings := func() (serving.ManagerSettings, error) {
		now, err := p.Settings()
		if given.Config != nil {
			now.Login = func(context.Context, serving.ClusterConfig) (map[string]*credentials.Info, error) {
				return map[string]*credentials.Info{"config": {Config: rest.CopyConfig(given.Config)}}, nil
			}
		}
		return now, err
	}
	first, err := settings() // errors are reported before anything starts
	if err != nil {
		return err
	}
	options := serving.Options{
		Name: p.Name, Log: given.Log, Metrics: serving.Metrics{BindAddress: given.MetricsBindAddress},
		HealthProbeBindAddress: given.HealthProbeBindAddress,
		Cluster:                serving.ClusterConfig{Kubeconfig: given.Kubeconfig, Context: given.Context},
		// Other operators in the process may have controllers of the same names.
		Embedded: true, SetUp: p.SetupWithManager,
	}
	// The startup handlers run before there is a manager, so they get a client of their own.
	if err := p.useLateClient(ctx, first, options.Cluster); err != nil {
		return err
	}
	if given.Liveness != "" {
		endpoint, err := serving.ParseLivenessAddress(given.Liveness)
		if err != nil {
			return fmt.Errorf("running operator %q: Liveness: %w", p.Name, err)
		}
		options.Liveness = &endpoint
	}
	// For the operator, the settings of Run are like flags.
	p.Apply(commandline.RunFlags{
		Inspection: given.inspectionSettings(), Metrics: serving.Metrics{BindAddress: given.MetricsBindAddress},
		HealthProbeBindAddress: given.HealthProbeBindAddress,
		Cluster:                options.Cluster,
	})
	return p.runBetweenActivities(ctx, func() error {
		now, err := settings()
		if err != nil {
			return err
		}
		return serving.Run(ctx, now, options)
	}, func() {})
}
