package kopf

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/children"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/registry"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/discovery"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/owned"
)

// clients are the clients with which handlers read and write other objects.
type clients struct {
	client   client.Client
	live     client.Reader
	children *children.Keeper
	keys     *listKeys // nil without an API server that publishes schemas
	// finalizer is the operator's own.
	finalizer string
	watches   func(owner discovery.Resource, kind schema.GroupKind) (children, objects bool)
}

// clientsOf returns clients that write as the operator until the manager stops waiting for it. A program of Main has no
// lease to lose, so its cleanup may use the client.
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
	if op.registry.Owns() {
		keeper.Owned = &owned.Children{Label: keeper.Label(), Author: keeper}
		keeper.Watched, keeper.Repaired = op.watchesChildren, op.repairs()
	}
	return keeper
}

// managed is a function of the user for the manager.
type managed struct {
	where string
	add   func(ctrl.Manager) error
}

// WithManager registers a function that gets the manager at the set-up, also under [Main]: to add controllers, webhooks
// or checks. It must not register handlers or read the cache. An error fails the set-up.
func (op *Operator) WithManager(add func(ctrl.Manager) error) {
	where := registry.Location()
	switch {
	case op == nil:
		registry.AddOwnerless(fmt.Errorf("WithManager: %w", errNoOperator))
	case add == nil:
		op.registry.AddError(where, errors.New("WithManager: the function is nil"))
	default:
		op.registry.IfOpen(where, func() { op.managed = append(op.managed, managed{where, add}) },
			errors.New("WithManager: called after the operator was set up, so the function never is"))
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

func (op *Operator) watchesChildren(of schema.GroupKind) bool {
	return op.registry.WatchesChildren(of, op.filled)
}

func (op *Operator) watchesFor(owner discovery.Resource, of schema.GroupKind) (children, objects bool) {
	return op.registry.WatchesFor(owner, of, op.filled)
}
