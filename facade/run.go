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
	"github.com/kopf-runtime/kopf-runtime/facade/internal/inprocess"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/liveness"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/observation"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/serving"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/activities"
)

// RunSettings are those of [Operator.Run]: what [Main] has flags for, and that is not in [Settings]. All may be zero.
type RunSettings struct {
	// Config says which cluster, and as whom. It is copied. Default: what handlers of [Operator.OnLogin] give; without
	// any, what Kubeconfig and Context say.
	Config *rest.Config
	// Kubeconfig is the file that says which cluster, as --kubeconfig does. Default: $KUBECONFIG, or the cluster around
	// the process, or ~/.kube/config.
	Kubeconfig string
	// Context is the name of a context in these files. Default: the current one.
	Context string
	// Log gets all lines of the operator, its handlers' included. Default: [Settings].LogHandler, or the logger of
	// controller-runtime, which the process sets once for all.
	Log logr.Logger
	// Metrics is where the metrics of the handlers are registered. Default: the registry of controller-runtime, where
	// they have the operator's name: operators of one name and different clusters need registries of their own.
	Metrics prometheus.Registerer
	// MetricsBindAddress serves the registry of controller-runtime, such as ":8080". Default: it is not served.
	MetricsBindAddress string
	// HealthProbeBindAddress serves /healthz and /readyz, such as ":8081". Default: they are not served.
	HealthProbeBindAddress string
	// PprofBindAddress serves the profiles of net/http/pprof below /debug/pprof, such as "localhost:6060". They may
	// tell what handlers work with, and a profile costs CPU: choose an address that only people you trust can reach.
	// Default: they are not served.
	PprofBindAddress string
	// ExplainBindAddress tells why handlers were called, or not, such as "localhost:8082": see docs/explain.md. It has
	// names and what handlers demand of objects, though no value that is redacted: choose an address that only people
	// you trust can reach. Default: it is not served.
	ExplainBindAddress string
	// Console serves the page /console there, which shows the running operator: see docs/console.md. It needs an
	// ExplainBindAddress, and whoever can reach that can read it. Default: it is not served.
	Console bool
	// Liveness is a URL where the results of the probes are served, such as http://0.0.0.0:8080/healthz. Default: they
	// are not served. Kopf: liveness_endpoint.
	Liveness string
}

// Run runs the operator as a part of a process that does other things, too, and returns when it has ended. Any number
// of operators can run at once, for one cluster or for several; each starts and ends for itself.
//
// # Flow
//
// It is what [Main] does, without a command line: the startup, the login, the handlers in a manager of its own, and,
// when the context has ended, the cleanup. [Operator.Ready] tells when it is at work. Signals are the caller's; the
// process is never ended, and its loggers are left as they are. An operator runs once: for another run, make a new one,
// which may have the same name.
//
// # Errors
//
// A context that has ended is no error, and neither is what it interrupts. Errors are the mistakes of the registrations
// and settings, those of the startup, the login and the cleanup, and whatever else ends the operator by itself: then
// nothing of it is left, and others are not touched. Kopf: kopf.operator.
func (op *Operator) Run(ctx context.Context, settings ...RunSettings) error {
	if !op.valid() {
		return errNoOperator
	}
	given, err := op.embed(settings)
	if err != nil {
		return err
	}
	op.observed, op.inProcess = observation.From(ctx), inprocess.From(ctx)
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
		Pprof:    given.PprofBindAddress,
		Cluster:  serving.Cluster{Kubeconfig: given.Kubeconfig, Context: given.Context},
		Embedded: true, SetUp: program.SetupWithManager,
	}
	if err := op.useLateClient(ctx, first, options.Cluster); err != nil {
		return err
	}
	if given.Liveness != "" {
		endpoint, err := liveness.Parse(given.Liveness)
		if err != nil {
			return fmt.Errorf("running operator %q: Liveness: %w", op.name, err)
		}
		options.Liveness = &endpoint
	}
	op.inspectAt(commandline.Inspection{Address: given.ExplainBindAddress, Console: given.Console})
	return op.around(ctx, func() error {
		now, err := settingsOf()
		if err != nil {
			return err
		}
		return serving.Run(ctx, now, options)
	}, func() {})
}

// Ready is closed when the operator is at work: the startup has succeeded, and all that it serves is listed and
// watched, with all indices filled. One that pauses from its start on is not ready before it may act. Kopf: ready_flag.
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

// embed takes over what the process wants. An operator can be run once.
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
	if given.Console && (given.ExplainBindAddress == "" || given.ExplainBindAddress == "0") {
		return given, fmt.Errorf("running operator %q: Console: the page is served at the ExplainBindAddress: set it",
			op.name)
	}
	if given.Config != nil && (given.Kubeconfig != "" || given.Context != "" || op.acts(activities.Login)) {
		return given, fmt.Errorf("running operator %q: %w", op.name, errors.New("the Config says which cluster, so "+
			"there must be neither Kubeconfig, nor Context, nor OnLogin: give one of them"))
	}
	given.chooseLog(op.given)
	op.embedding, op.embedded = true, given
	return given, nil
}

// loginBy takes the credentials of the project, whatever they are made of.
func loginBy(config *rest.Config) func(context.Context, serving.Cluster) (map[string]*credentials.Info, error) {
	return func(context.Context, serving.Cluster) (map[string]*credentials.Info, error) {
		return map[string]*credentials.Info{"config": {Config: rest.CopyConfig(config)}}, nil
	}
}

// logger is the operator's.
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

// registry is where the operator's metrics are.
func (op *Operator) registry() prometheus.Registerer {
	if op.embedded.Metrics != nil {
		return op.embedded.Metrics
	}
	return metrics.Registry
}
