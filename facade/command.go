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
	"github.com/kopf-runtime/kopf-runtime/facade/internal/serving"
	"github.com/kopf-runtime/kopf-runtime/reconcilers"
)

// Main runs the operator as the program until SIGTERM or Ctrl-C, and exits. A second signal ends it at once. The code
// is 0 after a graceful stop, 1 on errors, 2 for a wrong command line, and 137 after [Settings].UltimateExitingTimeout.
// See docs/command-line.md. Kopf: kopf run.
func Main(op *Operator) {
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) // which would end it within whatever it is doing
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
	program := commandline.Program{Name: op.name, Operator: commandOperator{op}, Webhooks: op.webhooks}
	if !op.valid() {
		program.Err = errNoOperator
	}
	return commandline.New(program)
}

// commandOperator adapts an operator to the command line.
type commandOperator struct{ op *Operator }

// Settings returns the settings of the manager of an operator that makes its own. It reports all errors of
// registrations.
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
	limit := serving.WatchExit(ctx, c.op.logger(), c.op.exitLimit)
	defer limit.Stop()
	c.op.mu.Lock()
	if given.Scoped {
		c.op.given.Namespaces, c.op.given.NamespacePatterns, c.op.given.NamespaceLabels = given.Namespaces, nil, ""
	}
	c.op.given.Peering.take(given.Peering)
	c.op.listening = addresses{given.Metrics, given.Health}
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
	op.late, op.cluster = client.WithFieldOwner(late, op.name), to
	return nil
}

// around calls serve between the startup and the cleanup, and calls returned after serve.
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

// exitLimit is the limit of the exit by the current settings, which the startup may have changed.
func (op *Operator) exitLimit() time.Duration {
	op.mu.Lock()
	defer op.mu.Unlock()
	return op.settings.values.UltimateExitingTimeout
}
