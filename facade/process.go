package kopf

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/kit"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/program"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/serving"
	"github.com/kopf-runtime/kopf-runtime/reconcilers"
)

// asProcess returns the operator as a program, for the command line and for Run.
func (op *Operator) asProcess() serving.Process {
	return serving.Process{RunnableOperator: runnableOperator{op}, Name: op.name, Log: op.namedLogger}
}

// runnableOperator is the part of an operator that its program uses. It keeps these methods out of the API of Operator.
type runnableOperator struct{ op *Operator }

// Settings returns the settings of the manager that the program creates. It returns all errors of registrations, so
// that a program with mistakes does not connect.
func (p runnableOperator) Settings() (serving.ManagerSettings, error) {
	p.op.registry.Lock()
	defer p.op.registry.Unlock()
	// The plan is made for its errors. The set-up makes another one after the startup.
	scheme, _, err := p.op.planWithNewScheme()
	if err != nil {
		return serving.ManagerSettings{}, err
	}
	own := p.op.settings.values
	return serving.ManagerSettings{
		AnnotationPrefix: own.Persistence.AnnotationPrefix,
		Scheme:           scheme, Patterns: p.op.settings.scope.ServedPatterns(),
		CachedReads: own.CachedReads, LogHandler: own.LogHandler,
		Connection: p.op.settings.connectionSettings(), Transport: own.Tracing.transportWrapper(),
		Probe: p.op.activities.Probing.AwaitResults, StopProbes: p.op.activities.Probing.StopProbing,
		Login: p.op.activities.LogIn, WebhookServer: own.Admission.asReviewSettings().WebhookServer(),
		ExitTimeout: own.Queueing.ExitTimeout,
	}, nil
}

// Apply takes over the flags, which override the settings.
func (p runnableOperator) Apply(given serving.RunFlags) {
	if !given.Inspection.IsOff() {
		p.op.keepJournal()
	}
	p.op.registry.Lock()
	defer p.op.registry.Unlock()
	// A flag replaces the namespaces of the settings as a whole: labels and expressions must not restrict it.
	if given.HasScope {
		p.op.userSettings.Namespaces, p.op.userSettings.NamespacePatterns,
			p.op.userSettings.NamespaceLabels = given.Namespaces, nil, ""
	}
	p.op.userSettings.Peering.applyFlags(given.Peering)
	// Without an address, the inspection settings of an earlier call stay.
	if given.Inspection.IsOff() {
		given.Inspection = p.op.flags.Inspection
	}
	p.op.flags = given
}

// UseClient sets the client of the startup.
func (p runnableOperator) UseClient(late client.Client) {
	p.op.registry.Lock()
	defer p.op.registry.Unlock()
	p.op.lateClient = late
}

// StartUp calls the handlers of the startup.
func (p runnableOperator) StartUp(ctx context.Context) (ready bool, err error) {
	return p.op.startUp(ctx)
}

// CleanUp calls the handlers of the cleanup.
func (p runnableOperator) CleanUp(ctx context.Context) error { return p.op.activities.CleanUp(ctx) }

// SetupWithManager adds the operator and the debug server to the manager.
func (p runnableOperator) SetupWithManager(m ctrl.Manager, defaultNamespace func() string) error {
	op := p.op
	op.defaultNamespace = defaultNamespace
	err := op.setUp(m, true)
	return errors.Join(err,
		program.AddDebugServer(m, op.flags.Inspection, op.journal, op.coordination.KnownPeers, op.namedLogger()))
}

// ExitTimeout returns the timeout of the current settings, which the startup may have changed.
func (p runnableOperator) ExitTimeout() time.Duration {
	p.op.registry.Lock()
	defer p.op.registry.Unlock()
	return p.op.settings.values.UltimateExitingTimeout
}

// planWithNewScheme returns the plan of a program, with a new scheme that contains the types of client-go.
func (op *Operator) planWithNewScheme() (*runtime.Scheme, []reconcilers.Registration, error) {
	// A new scheme each time, because the startup may change AddToScheme.
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return nil, nil, fmt.Errorf("adding the types of client-go to the scheme: %w", err)
	}
	if err := op.fillScheme(scheme); err != nil {
		return nil, nil, err
	}
	plan, err := op.buildPlan(scheme)
	return scheme, plan, err
}

// applyFlags applies the flags of peering. A named peering becomes mandatory, as in Kopf, and overrides Standalone.
func (p *PeeringSettings) applyFlags(given serving.PeeringFlags) {
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

// init makes the handlers of operators available to package facadetest, which this package cannot import.
func init() { kit.PartsOf = prepareParts }

// prepareParts prepares the handlers of an operator for package facadetest, which calls them without running the
// operator.
func prepareParts(operator any, scheme *runtime.Scheme, cluster client.Client) (kit.OperatorParts, error) {
	op, _ := operator.(*Operator)
	if !op.isValid() {
		return kit.OperatorParts{}, errNoOperator
	}
	op.registry.Lock()
	defer op.registry.Unlock()
	plan, err := op.buildPlan(scheme)
	if err != nil {
		return kit.OperatorParts{}, err
	}
	op.clients = op.newClientSet(cluster, cluster)
	parts := kit.OperatorParts{Children: op.clients.children}
	for _, one := range plan {
		parts.Handlers = append(parts.Handlers, one.Handler)
	}
	return parts, nil
}
