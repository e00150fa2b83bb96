package kopf

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"syscall"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/activities"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/commandline"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/kit"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/registry"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/serving"
	"github.com/kopf-runtime/kopf-runtime/internal/inspection"
)

// Main runs the operator as the program until SIGTERM or Ctrl-C, and exits. A second signal ends it at once. The code
// is 0 after a graceful stop, 1 on errors, 2 for a wrong command line, and 137 after [Settings].UltimateExitingTimeout.
// In a pod, one of its replicas acts. See docs/command-line.md. Kopf: kopf run.
func Main(op *Operator) {
	// By default, Go ends a process that writes to a closed stdout or stderr. A lost log must not end an operator.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	//nolint:revive // leaving is what it is for
	os.Exit(ExitCode(op.Command().ExecuteContext(commandline.SignalContext())))
}

// ExitCode returns the exit code for an error of [Operator.Command], as of [Main].
func ExitCode(err error) int { return commandline.ExitCode(err) }

// Command returns the command line, for programs that add flags or commands. End its context to stop the operator. It
// prints its errors, see [ExitCode].
func (op *Operator) Command() *cobra.Command {
	if op == nil {
		return commandline.New(commandline.Program{Err: errNoOperator})
	}
	program := commandline.Program{
		Process: op.asProcess(), Manifests: op.generateManifests, Stored: op.storedThings,
		Preflight: op.checkCluster, Plan: op.planChanges,
	}
	if !op.isValid() {
		program.Err = errNoOperator
	}
	return commandline.New(program)
}

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

// options returns the options of a run, or an error for settings that exclude each other. The default logger is the
// handler of the settings, or else the logger of controller-runtime.
func (s RunSettings) options(handler slog.Handler, logsIn bool) (o serving.RunOptions, err error) {
	o = serving.RunOptions{
		RunFlags: serving.RunFlags{
			Inspection: serving.Inspection{Address: s.DebugBindAddress, Console: s.Console, Profiling: s.Profiling},
			Metrics:    serving.Metrics{BindAddress: s.MetricsBindAddress},

			HealthProbeBindAddress: s.HealthProbeBindAddress,
			Cluster:                serving.ClusterConfig{Kubeconfig: s.Kubeconfig, Context: s.Context},
		},
		ManagerLog: s.Log, Config: s.Config, Embedded: true,
	}
	if part := o.Inspection.UnservedPart(); part != "" {
		return o, fmt.Errorf("%s: it is served at the DebugBindAddress: set it", part)
	}
	// A Config contains the credentials, so every other way to find the cluster would be ignored.
	if s.Config != nil && (s.Kubeconfig != "" || s.Context != "" || logsIn) {
		return o, errors.New("the Config says which cluster, so there must be neither Kubeconfig, nor Context, nor " +
			"OnLogin: give one of them")
	}
	switch {
	case s.Log.GetSink() != nil:
	case handler != nil:
		// An explicit logger wins over the handler of the settings.
		o.ManagerLog = logr.FromSlogHandler(handler)
	default:
		o.ManagerLog = logf.Log
	}
	if s.Liveness == "" {
		return o, nil
	}
	if o.Liveness, err = serving.ParseLivenessAddress(s.Liveness); err != nil {
		return o, fmt.Errorf("Liveness: %w", err) //nolint:staticcheck // the text begins with the name of a field
	}
	return o, nil
}

// Run runs the operator until the context ends, like [Main] without a command line, signals and exit. Several operators
// can run at once; each can run once. The end of the context is not an error. Errors are mistakes of registrations and
// settings, and all that ends the operator by itself. See docs/embedding.md. Kopf: kopf.operator.
func (op *Operator) Run(ctx context.Context, settings ...RunSettings) error {
	if !op.isValid() {
		return errNoOperator
	}
	options, err := op.prepareRun(settings)
	if err != nil {
		return err
	}
	hooks := kit.HooksFromContext(ctx)
	op.attemptObserver, op.reviews.InProcess = hooks.Observer, hooks.Webhooks
	return op.asProcess().Run(ctx, options)
}

// Ready is closed after the startup, when all resources are listed and watched, all indices are filled, and the
// operator is not paused. Kopf: ready_flag.
func (op *Operator) Ready() <-chan struct{} {
	if !op.isValid() {
		return nil
	}
	return op.ready
}

// prepareRun takes over the settings of Run. It returns an error if the operator was run or set up before.
func (op *Operator) prepareRun(all []RunSettings) (options serving.RunOptions, err error) {
	op.registry.Lock()
	defer op.registry.Unlock()
	var given RunSettings
	switch {
	case op.registry.Stage != registry.Registering || op.coordination.Embedded:
		return options, fmt.Errorf("running operator %q: it was run or set up already: make another one with kopf.New",
			op.name)
	case len(all) > 1:
		return options, fmt.Errorf("running operator %q: %d RunSettings are given: set all fields in one of them",
			op.name, len(all))
	case op.userSettings.UltimateExitingTimeout != 0:
		return options, fmt.Errorf("running operator %q: UltimateExitingTimeout: it is for kopf.Main; here, the "+
			"process is the project's", op.name)
	case len(all) == 1:
		given = all[0]
	}
	options, err = given.options(op.userSettings.LogHandler, op.registry.HasActivityHandlers(activities.Login))
	if err != nil {
		return options, fmt.Errorf("running operator %q: %w", op.name, err)
	}
	op.coordination.Embedded, op.runLog, op.runMetrics = true, options.ManagerLog, given.Metrics
	return options, nil
}

// ExplainHandler serves explanations on a server of the project, which must authenticate or listen on localhost. Call
// it before the set-up. See docs/explain.md.
func (op *Operator) ExplainHandler() http.Handler {
	if !op.isValid() {
		return http.NotFoundHandler()
	}
	return inspection.NewHandler(op.keepJournal(), inspection.ExtraHandlers{})
}

// ConsoleHandler serves /console and the paths below it on a server of the project, which must authenticate or listen
// on localhost. Call it before the set-up. See docs/console.md.
func (op *Operator) ConsoleHandler() http.Handler {
	if !op.isValid() {
		return http.NotFoundHandler()
	}
	return inspection.NewConsole(op.keepJournal(), op.coordination.KnownPeers)
}
