package program

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/commandline"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/credentials"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/serving"
)

// RunSettings are those of Run, as package facade documents them.
type RunSettings struct {
	Config                 *rest.Config
	Kubeconfig             string
	Context                string
	Log                    logr.Logger
	Metrics                prometheus.Registerer
	MetricsBindAddress     string
	HealthProbeBindAddress string
	DebugBindAddress       string
	Console, Profiling     bool
	Liveness               string
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

// login returns a login with the credentials of the project; nil without a Config.
func (s *RunSettings) login() func(context.Context, serving.Cluster) (map[string]*credentials.Info, error) {
	if s.Config == nil {
		return nil
	}
	return func(context.Context, serving.Cluster) (map[string]*credentials.Info, error) {
		return map[string]*credentials.Info{"config": {Config: rest.CopyConfig(s.Config)}}, nil
	}
}

// Run runs the operator until the context ends, without a command line, signals and exit.
func (p Process) Run(ctx context.Context, given RunSettings) error {
	settings := func() (serving.Settings, error) {
		now, err := p.Operator.Settings()
		if login := given.login(); login != nil {
			now.Login = login
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
		Embedded: true, SetUp: p.Operator.SetUp,
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
	p.Operator.Apply(commandline.Given{
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
