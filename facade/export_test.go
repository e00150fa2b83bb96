package kopf

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/commandline"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/connection"
	"github.com/kopf-runtime/kopf-runtime/reconcilers"
)

// Plan is what the operator hands to the engine; or all that is wrong with it.
func Plan(op *Operator, scheme *runtime.Scheme) ([]reconcilers.Registration, error) {
	op.registry.Lock()
	defer op.registry.Unlock()
	return op.plan(scheme)
}

// EngineOptions are the operator's settings as the engine gets them.
func EngineOptions(op *Operator) reconcilers.Options { return op.engineOptions(nil) }

// Connect gives the operator a client, as the set-up does.
func Connect(op *Operator, c client.Client) { op.clients = op.clientsOf(c, c) }

// ConnectionOf is how a program of the operator connects.
func ConnectionOf(op *Operator) connection.Settings { return op.settings.connection() }

// ResolvedSettings are the operator's settings with their defaults.
func ResolvedSettings(op *Operator) Settings { return op.settings.values }

// LookAtFirstCallsOnly looks for changes in place as programs do that are no tests, until the given function is called.
func LookAtFirstCallsOnly() (undo func()) {
	kept := everyCall
	everyCall = func() bool { return false }
	return func() { everyCall = kept }
}

// StartUp calls the handlers of the startup, as a program does.
func StartUp(ctx context.Context, op *Operator) error {
	_, err := op.startUp(ctx)
	return err
}

// AskProbes calls the probes, as the health endpoint does.
func AskProbes(ctx context.Context, op *Operator) (any, error) { return op.activities.Probing.Ask(ctx) }

// SetUpAsProgram adds the operator to the manager of a program, after [StartUp].
func SetUpAsProgram(op *Operator, m ctrl.Manager) error { return op.setUp(m, true) }

// WebhookServerOf is the webhook server of a program of the operator, after [StartUp].
func WebhookServerOf(op *Operator) webhook.Server {
	return op.given.Admission.rules().WebhookServer()
}

// ExplainAt has a program of the operator explain itself there; or not, if that is optional, and the address is taken.
func ExplainAt(op *Operator, address string, optional bool) {
	process{op}.Apply(commandline.Given{Inspection: commandline.Inspection{Address: address, Optional: optional}})
}
