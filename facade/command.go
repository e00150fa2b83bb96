package kopf

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/commandline"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/exitlimit"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/serving"
	"github.com/kopf-runtime/kopf-runtime/reconcilers"
)

// Main runs the operator as the program: it reads the command line, serves until SIGTERM or Ctrl-C, and exits. It never
// returns. A second signal ends the process at once, unless it is the same one within a second: some launchers send it
// twice. A closed log pipe does not end the process.
//
// The exit code is 0 after a graceful stop, 1 on errors, 2 for a wrong command line, and 137 if the process does not
// end in time, see [ProcessSettings]; errors go to stderr. For the flags, and for the environment variables that stand
// in for them, run the program with --help. To add flags or commands of your own, see [Operator.Command]. Kopf: kopf run.
func Main(op *Operator) {
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) // which would end it within whatever it is doing
	//nolint:revive // leaving is what it is for
	os.Exit(ExitCode(op.Command().ExecuteContext(commandline.SignalContext())))
}

// ExitCode is what a program that executes [Operator.Command] exits with: 0 for nil, 2 for a wrong command line, 1 for
// any other error.
func ExitCode(err error) int { return commandline.ExitCode(err) }

// Command returns the command line of the operator as a command of cobra, for programs with flags or commands of their
// own. Execute it with a context that ends when the operator is to stop. The command prints its errors; for the exit
// code, see [ExitCode].
func (op *Operator) Command() *cobra.Command {
	if op == nil {
		return commandline.New(commandline.Program{Err: errNoOperator})
	}
	program := commandline.Program{Name: op.name, Operator: commandOperator{op}, Webhooks: op.webhooks}
	if !op.valid() {
		program.Err = errNoOperator
	}
	return commandline.New(program)
}

// commandOperator is an operator as the command line knows it.
type commandOperator struct{ op *Operator }

// Settings are those of the manager of an operator without a project around it. All errors of registrations come out
// here.
func (c commandOperator) Settings() (serving.Settings, error) {
	c.op.mu.Lock()
	defer c.op.mu.Unlock()
	scheme, _, err := c.op.planAlone()
	if err != nil {
		return serving.Settings{}, err
	}
	own := c.op.settings.values
	cached, _ := own.patterns().Plain() // patterns may match any others
	return serving.Settings{
		Scheme: scheme, Namespaces: own.patterns().Texts(), Patterns: own.patterns(), CachedNamespaces: cached,
		CachedReads: own.CachedReads, LogHandler: own.LogHandler,
		Connection: c.op.settings.connection(), Transport: own.Tracing.wrapper(),
		Probe: c.op.probing.Ask, StopProbes: c.op.probing.Stop,
		Login: c.op.logIn, WebhookServer: own.Admission.webhookServer(), ExitTimeout: own.Queueing.ExitTimeout,
	}, nil
}

// planAlone is the plan of a program, which has a scheme of its own.
func (op *Operator) planAlone() (*runtime.Scheme, []reconcilers.Registration, error) {
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return nil, nil, fmt.Errorf("adding the types of client-go to the scheme: %w", err)
	}
	if err := op.fillScheme(scheme); err != nil {
		return nil, nil, err
	}
	plan, err := op.plan(scheme)
	return scheme, plan, err
}

// Around calls serve between the startup and the cleanup. The flags win over the settings, but not over the startup.
func (c commandOperator) Around(ctx context.Context, given commandline.Given, serve func() error) error {
	limit := exitlimit.Watch(ctx, c.op.logger(), c.op.exitLimit)
	defer limit.Stop()
	c.op.mu.Lock()
	if given.Scoped {
		c.op.given.Namespaces, c.op.given.NamespacePatterns, c.op.given.NamespaceLabels = given.Namespaces, nil, ""
	}
	c.op.given.Peering.take(given.Peering)
	c.op.mu.Unlock()
	c.op.inspectAt(given.Inspection)
	own, err := c.Settings()
	if err == nil {
		err = c.op.useLateClient(ctx, own, given.Cluster)
	}
	if err != nil {
		return err
	}
	return c.op.around(ctx, serve, limit.Begin)
}

// useLateClient gives the startup a client, which logs in when it is used first.
func (op *Operator) useLateClient(ctx context.Context, settings serving.Settings, to serving.Cluster) error {
	late, err := settings.LateClient(ctx, op.name, to)
	if err != nil {
		return fmt.Errorf("operator %q: making the client of the startup: %w", op.name, err)
	}
	op.mu.Lock()
	defer op.mu.Unlock()
	op.late = client.WithFieldOwner(late, op.name)
	return nil
}

// around calls serve between the startup and the cleanup, and tells when it has returned.
func (op *Operator) around(ctx context.Context, serve func() error, returned func()) error {
	ready, err := op.startUp(ctx)
	if !ready {
		return err
	}
	err = serve()
	returned()
	return errors.Join(err, op.cleanUp(ctx))
}

// SetupWithManager adds the operator to the manager of the command line.
func (c commandOperator) SetupWithManager(m ctrl.Manager, defaultNamespace func() string) error {
	c.op.defaultNamespace = defaultNamespace
	return errors.Join(c.op.setUp(m, true), c.op.addInspection(m))
}

// exitLimit is how long the exit may take by the settings as they are by now: a startup may have changed them.
func (op *Operator) exitLimit() time.Duration {
	op.mu.Lock()
	defer op.mu.Unlock()
	return op.settings.values.UltimateExitingTimeout
}
