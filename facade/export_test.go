package kopf

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/commandline"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/credentials"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/draining"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/planning"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/serving"
	"github.com/kopf-runtime/kopf-runtime/reconcilers"
)

// Plan returns the registrations that the operator passes to the engine, or all errors of the set-up.
func Plan(op *Operator, scheme *runtime.Scheme) ([]reconcilers.Registration, error) {
	op.registry.Lock()
	defer op.registry.Unlock()
	return op.buildPlan(scheme)
}

// EngineOptions returns the operator's settings for the engine.
func EngineOptions(op *Operator) reconcilers.Options { return op.engineOptions(nil) }

// Connect sets the clients of the operator, as the set-up does.
func Connect(op *Operator, c client.Client) { op.clients = op.newClientSet(c, c) }

// ConnectionOf returns the connection settings of a program of the operator.
func ConnectionOf(op *Operator) credentials.Configuration {
	return op.settings.connectionSettings()
}

// ResolvedSettings returns the operator's settings with their defaults.
func ResolvedSettings(op *Operator) Settings { return op.settings.values }

// LookAtFirstCallsOnly limits the check for changes in place to the first calls, as in programs other than tests,
// until the returned function is called.
func LookAtFirstCallsOnly() (undo func()) {
	kept := checksEveryCall
	checksEveryCall = func() bool { return false }
	return func() { checksEveryCall = kept }
}

// StartUp calls the startup handlers, as a program does.
func StartUp(ctx context.Context, op *Operator) error {
	_, err := op.startUp(ctx)
	return err
}

// AskProbes calls the probes, as the health endpoint does.
func AskProbes(ctx context.Context, op *Operator) (any, error) {
	return op.activities.Probing.AwaitResults(ctx)
}

// SetUpAsProgram adds the operator to the manager of a program, after [StartUp].
func SetUpAsProgram(op *Operator, m ctrl.Manager) error { return op.setUp(m, true) }

// ExplainAt sets the address at which a program of the operator serves explanations. If it is optional, an address
// that is in use is not an error.
func ExplainAt(op *Operator, address string, optional bool) {
	inspection := serving.Inspection{Address: address, Optional: optional}
	runnableOperator{op}.Apply(serving.RunFlags{Inspection: inspection})
}

// StoredThings describes everything that the operator stores in a cluster.
func StoredThings(op *Operator) (draining.StoredState, error) { return op.storedThings() }

// PlanOf predicts what the operator would do on the cluster.
func PlanOf(ctx context.Context, op *Operator, config *rest.Config) (*planning.ChangePlan, error) {
	report, err := op.planChanges(ctx, commandline.PlanRequest{Cluster: config})
	if err != nil {
		return nil, err
	}
	return report.(*planning.ChangePlan), nil //nolint:forcetypeassert // the only type
}
