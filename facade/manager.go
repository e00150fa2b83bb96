package kopf

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/children"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/discovery"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/owned"
)

// clients are what handlers read and write other objects with.
type clients struct {
	client   client.Client
	live     client.Reader
	children *children.Keeper
	keys     *listKeys // nil without an API server that publishes schemas
	// finalizer is the operator's own.
	finalizer string
	watches   func(owner discovery.Resource, kind schema.GroupKind) (children, objects bool)
}

// clientsOf writes as the operator, as long as the manager waits for it. A program that Main runs loses no lease, and
// may use its client for the cleanup.
func (op *Operator) clientsOf(writing client.Client, live client.Reader) clients {
	if !op.started && op.fence != nil {
		writing = op.fence.Client(writing)
	}
	writing = client.WithFieldOwner(writing, op.name)
	return clients{
		client: writing, live: live, children: op.keeper(writing, live), watches: op.watchesFor,
		finalizer: op.settings.values.Persistence.Finalizer,
	}
}

// keeper keeps children by the settings as they are by now.
func (op *Operator) keeper(writing client.Client, live client.Reader) *children.Keeper {
	kept := op.settings.values.Persistence
	keeper := &children.Keeper{
		Client: writing, Live: live, Prefix: kept.AnnotationPrefix, Finalizer: kept.Finalizer,
		Manager: op.name, FormerManagers: op.settings.values.Execution.FormerManagers,
		LikeKopf: kept.KopfFormats, NoLabels: op.settings.values.Execution.NoInheritedLabels,
	}
	if op.owns() {
		keeper.Owned, keeper.Watched = &owned.Children{
			Label: keeper.Label(), Author: keeper, Repairer: keeper,
		}, op.watchesChildren
		keeper.Repaired = op.repairs()
	}
	return keeper
}

// managed is a function of the user for the manager.
type managed struct {
	where string
	add   func(ctrl.Manager) error
}

// WithManager has the function called with the manager when the operator is set up, under [Main] as well as by
// [Operator.SetupWithManager]: for what an operator has beside its handlers, such as further controllers, webhooks,
// health checks and indices of fields, and for clients of your own, with the manager's rest.Config.
//
// # Flow
//
// The functions are called once, in the order of registration, when all mistakes of registrations are ruled out, and
// before the manager starts. So clients can be used, except for reads from the cache. Handlers that a function
// registers come too late. An error fails the set-up, and so does a call of WithManager after it.
func (op *Operator) WithManager(add func(ctrl.Manager) error) {
	where := location()
	switch {
	case op == nil:
		addOwnerless(fmt.Errorf("WithManager: %w", errNoOperator))
	case add == nil:
		op.addError(where, errors.New("WithManager: the function is nil"))
	default:
		op.mu.Lock()
		defer op.mu.Unlock()
		if op.stage != registering {
			err := errors.New("WithManager: called after the operator was set up, so the function never is")
			op.keepError(where, err)
			return
		}
		op.managed = append(op.managed, managed{where, add})
	}
}

// addManaged calls the functions of WithManager.
func (op *Operator) addManaged(m ctrl.Manager) error {
	for _, one := range op.managed {
		if err := one.add(m); err != nil {
			return fmt.Errorf("%s: WithManager: %w", one.where, err)
		}
	}
	return nil
}
