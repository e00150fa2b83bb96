package kopf

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/commandline"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/credentials"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/kit"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/serving"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/activities"
)

// RunSettings configure [Operator.Run]. All fields are optional.
type RunSettings struct {
	// Config is the connection; it is copied. It excludes Kubeconfig, Context and OnLogin, the default.
	Config *rest.Config
	// Kubeconfig is a file. Default: $KUBECONFIG, the service account, or ~/.kube/config.
	Kubeconfig string
	// Context is a context in this file. Default: the current one.
	Context string
	// Log receives all log lines. Default: [Settings].LogHandler, or the logger of controller-runtime.
	Log logr.Logger
	// Metrics is the registry; operators of one name need separate ones. Default: that of controller-runtime.
	Metrics prometheus.Registerer
	// MetricsBindAddress and the next two are served without authentication. Default: off. See docs/listeners.md.
	MetricsBindAddress     string
	HealthProbeBindAddress string
	// DebugBindAddress serves /explain. Use loopback, such as "localhost:8082".
	DebugBindAddress string
	// Console serves /console at the DebugBindAddress, and Profiling /debug/pprof.
	Console, Profiling bool
	// Liveness is the URL of probe results, such as http://0.0.0.0:8080/healthz. Default: off. Kopf: liveness_endpoint.
	Liveness string
}

// Run runs the operator until the context ends, like [Main] without a command line, signals and exit. Several operators
// can run at once; each can run once. The end of the context is not an error. Errors are mistakes of registrations and
// settings, and all that ends the operator by itself. See docs/embedding.md. Kopf: kopf.operator.
func (op *Operator) Run(ctx context.Context, settings ...RunSettings) error {
	if !op.valid() {
		return errNoOperator
	}
	given, err := op.embed(settings)
	if err != nil {
		return err
	}
	hooks := kit.From(ctx)
	op.observed, op.inProcess = hooks.Observer, hooks.Webhooks
	program := commandOperator{op}
	settingsOf := func() (serving.Settings, error) {
		now, err := program.Settings()
		if given.Config != nil {
			now.Login = loginBy(given.Config)
		}
		return now, err
	}
	first, err := settingsOf() // before anything is started
	if err != nil {
		return err
	}
	options := serving.Options{
		Name: op.name, Log: op.baseLogger(), Metrics: given.MetricsBindAddress, Health: given.HealthProbeBindAddress,
		Cluster:  serving.Cluster{Kubeconfig: given.Kubeconfig, Context: given.Context},
		Embedded: true, SetUp: program.SetupWithManager,
	}
	if err := op.useLateClient(ctx, first, options.Cluster); err != nil {
		return err
	}
	if given.Liveness != "" {
		endpoint, err := serving.ParseLiveness(given.Liveness)
		if err != nil {
			return fmt.Errorf("running operator %q: Liveness: %w", op.name, err)
		}
		options.Liveness = &endpoint
	}
	op.inspectAt(given.inspection())
	return op.around(ctx, func() error {
		now, err := settingsOf()
		if err != nil {
			return err
		}
		return serving.Run(ctx, now, options)
	}, func() {})
}

// Ready is closed after the startup, when all resources are listed and watched, all indices are filled, and the
// operator is not paused. Kopf: ready_flag.
func (op *Operator) Ready() <-chan struct{} {
	if !op.valid() {
		return nil
	}
	return op.ready
}

// awaitWork runs in the manager.
func (op *Operator) awaitWork(ctx context.Context) error {
	if op.health.AtWork(ctx) && op.awaitReviews(ctx) {
		op.atWork.Do(func() { close(op.ready) })
	}
	return nil
}

// embed takes over the settings of the process. It fails for an operator that was run before.
func (op *Operator) embed(all []RunSettings) (given RunSettings, err error) {
	op.mu.Lock()
	defer op.mu.Unlock()
	switch {
	case op.stage != registering || op.embedding:
		return given, fmt.Errorf("running operator %q: it was run or set up already: make another one with kopf.New",
			op.name)
	case len(all) > 1:
		return given, fmt.Errorf("running operator %q: %d RunSettings are given: set all fields in one of them",
			op.name, len(all))
	case op.given.UltimateExitingTimeout != 0:
		return given, fmt.Errorf("running operator %q: UltimateExitingTimeout: it is for kopf.Main; here, the "+
			"process is the project's", op.name)
	case len(all) == 1:
		given = all[0]
	}
	if part := given.inspection().Unserved(); part != "" {
		return given, fmt.Errorf("running operator %q: %s: it is served at the DebugBindAddress: set it", op.name, part)
	}
	if given.Config != nil && (given.Kubeconfig != "" || given.Context != "" || op.acts(activities.Login)) {
		return given, fmt.Errorf("running operator %q: %w", op.name, errors.New("the Config says which cluster, so "+
			"there must be neither Kubeconfig, nor Context, nor OnLogin: give one of them"))
	}
	given.chooseLog(op.given)
	op.embedding, op.embedded = true, given
	op.listening = addresses{given.MetricsBindAddress, given.HealthProbeBindAddress}
	return given, nil
}

// inspection is the debug server.
func (s *RunSettings) inspection() commandline.Inspection {
	return commandline.Inspection{Address: s.DebugBindAddress, Console: s.Console, Profiling: s.Profiling}
}

// loginBy returns a login with the credentials of the project.
func loginBy(config *rest.Config) func(context.Context, serving.Cluster) (map[string]*credentials.Info, error) {
	return func(context.Context, serving.Cluster) (map[string]*credentials.Info, error) {
		return map[string]*credentials.Info{"config": {Config: rest.CopyConfig(config)}}, nil
	}
}

// logger is the logger of the operator, with its name.
func (op *Operator) logger() logr.Logger { return op.baseLogger().WithName(op.name) }

// baseLogger is where the operator logs.
func (op *Operator) baseLogger() logr.Logger {
	if op.embedding {
		return op.embedded.Log
	}
	return logf.Log
}

// chooseLog fills in the default.
func (s *RunSettings) chooseLog(own Settings) {
	switch {
	case s.Log.GetSink() != nil:
	case own.LogHandler != nil:
		s.Log = logr.FromSlogHandler(own.LogHandler)
	default:
		s.Log = logf.Log
	}
}

// registry is the registry of the operator's metrics.
func (op *Operator) registry() prometheus.Registerer {
	if op.embedded.Metrics != nil {
		return op.embedded.Metrics
	}
	return metrics.Registry
}
