package kopf

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/commandline"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/program"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/reviews"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/serving"
	"github.com/kopf-runtime/kopf-runtime/reconcilers"
)

// process returns the operator as a program, for the command line and for Run.
func (op *Operator) process() program.Process {
	return program.Process{RunnableOperator: process{op}, Name: op.name, Log: op.logger}
}

// process is the part of an operator that its program uses. It keeps these methods out of the API of Operator.
type process struct{ op *Operator }

// Settings returns the settings of the manager that the program creates. It returns all errors of registrations, so
// that a program with mistakes does not connect.
func (p process) Settings() (serving.Settings, error) {
	p.op.registry.Lock()
	defer p.op.registry.Unlock()
	// The plan is made for its errors. The set-up makes another one after the startup.
	scheme, _, err := p.op.planAlone()
	if err != nil {
		return serving.Settings{}, err
	}
	own := p.op.settings.values
	patterns := p.op.settings.scope.Patterns()
	cached, _ := patterns.Plain() // a pattern can match any namespace, so only plain names limit the cache
	return serving.Settings{
		Scheme: scheme, Namespaces: patterns.Texts(), Patterns: patterns, CachedNamespaces: cached,
		CachedReads: own.CachedReads, LogHandler: own.LogHandler,
		Connection: p.op.settings.connection(), Transport: own.Tracing.wrapper(),
		Probe: p.op.activities.Probing.Ask, StopProbes: p.op.activities.Probing.Stop,
		Login: p.op.activities.LogIn, WebhookServer: own.Admission.rules().WebhookServer(),
		ExitTimeout: own.Queueing.ExitTimeout,
	}, nil
}

// Apply takes over the flags, which override the settings.
func (p process) Apply(given commandline.Given) {
	if !given.Inspection.IsOff() {
		p.op.keepJournal()
	}
	p.op.registry.Lock()
	defer p.op.registry.Unlock()
	// A flag replaces the namespaces of the settings as a whole: labels and expressions must not restrict it.
	if given.Scoped {
		p.op.given.Namespaces, p.op.given.NamespacePatterns, p.op.given.NamespaceLabels = given.Namespaces, nil, ""
	}
	p.op.given.Peering.take(given.Peering)
	// Without an address, the inspection settings of an earlier call stay.
	if given.Inspection.IsOff() {
		given.Inspection = p.op.flags.Inspection
	}
	p.op.flags = given
}

// UseClient sets the client of the startup.
func (p process) UseClient(late client.Client) {
	p.op.registry.Lock()
	defer p.op.registry.Unlock()
	p.op.late = late
}

// StartUp calls the handlers of the startup.
func (p process) StartUp(ctx context.Context) (ready bool, err error) { return p.op.startUp(ctx) }

// CleanUp calls the handlers of the cleanup.
func (p process) CleanUp(ctx context.Context) error { return p.op.activities.CleanUp(ctx) }

// SetupWithManager adds the operator and the debug server to the manager.
func (p process) SetupWithManager(m ctrl.Manager, defaultNamespace func() string) error {
	op := p.op
	op.defaultNamespace = defaultNamespace
	err := op.setUp(m, true)
	return errors.Join(err,
		program.AddDebugServer(m, op.flags.Inspection, op.journal, op.coordination.Peers, op.logger()))
}

// ExitTimeout returns the timeout of the current settings, which the startup may have changed.
func (p process) ExitTimeout() time.Duration {
	p.op.registry.Lock()
	defer p.op.registry.Unlock()
	return p.op.settings.values.UltimateExitingTimeout
}

// webhooks returns the webhook configurations as the operator would write them, for the command webhooks.
func (op *Operator) webhooks(
	ctx context.Context, cluster *rest.Config, way commandline.Way,
) (objects []client.Object, hints []string, err error) {
	printed, err := op.printedReviews(way)
	if err != nil {
		return nil, nil, err
	}
	return printed.Objects(ctx, cluster)
}

// printedReviews returns the admission handlers for printing. It calls functions of the user, such as AddToScheme, and
// holds the lock meanwhile.
func (op *Operator) printedReviews(way commandline.Way) (reviews.PrintedReviews, error) {
	op.registry.Lock()
	defer op.registry.Unlock()
	_, plan, err := op.planAlone()
	if err != nil {
		return reviews.PrintedReviews{}, err
	}
	return op.reviews.Print(plan, way)
}

// planAlone returns the plan of a program, with a new scheme that contains the types of client-go.
func (op *Operator) planAlone() (*runtime.Scheme, []reconcilers.Registration, error) {
	// A new scheme each time, because the startup may change AddToScheme.
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

// take applies the flags of peering. A named peering becomes mandatory, as in Kopf, and overrides Standalone.
func (p *PeeringSettings) take(given commandline.Peering) {
	if given.Name != "" {
		p.Name, p.Mandatory, p.Standalone = given.Name, true, false
	}
	if given.Priority != nil {
		p.Priority = *given.Priority
	}
	if given.Standalone != nil {
		p.Standalone = *given.Standalone
	}
}
