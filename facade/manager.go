package kopf

import (
	"cmp"
	"errors"
	"fmt"

	"k8s.io/client-go/tools/leaderelection/resourcelock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/children"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/defaults"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/program"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/registry"
	"github.com/kopf-runtime/kopf-runtime/internal/metrics"
	"github.com/kopf-runtime/kopf-runtime/peering"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/owned"
)

// newClientSet returns clients that write as the operator. Under the project's manager, writes fail as soon as the
// manager stops waiting for the operator, such as after a lost lease: another process may already handle the objects. A
// program keeps its client for the cleanup, and has no lease to lose.
func (op *Operator) newClientSet(writing client.Client, live client.Reader) clientSet {
	if !op.hasStarted && op.fence != nil {
		writing = op.fence.WrapClient(writing)
	}
	writing = client.WithFieldOwner(writing, op.name)
	return clientSet{
		client: writing, apiReader: live, children: op.newChildrenKeeper(writing, live),
		watchScopes: op.registry.WatchesFor,
		finalizer:   op.settings.values.Persistence.Finalizer,
	}
}

// newChildrenKeeper returns the keeper of children for the current settings. A startup handler may change these, so it
// is called again after the startup.
func (op *Operator) newChildrenKeeper(writing client.Client, live client.Reader) *children.Keeper {
	kept := op.settings.values.Persistence
	keeper := &children.Keeper{
		Client: writing, APIReader: live, Prefix: kept.AnnotationPrefix, Finalizer: kept.Finalizer,
		FieldManager: op.name, FormerManagers: op.settings.values.Execution.FormerManagers,
		LikeKopf: kept.KopfFormats, NoLabels: op.settings.values.Execution.NoInheritedLabels,
	}
	if op.registry.WatchesAnyChildren() {
		keeper.OwnedChildren = &owned.Children{Label: keeper.ParentLabel(), Author: keeper}
		keeper.WatchesKind = op.registry.WatchesChildren
		// The engine registers the same metrics and reports the error, so nothing is lost by ignoring it here.
		if measured, err := metrics.New(op.name, op.metricsRegistry()); err == nil {
			keeper.OnRepair = measured.CountRepair
		}
	}
	return keeper
}

// WithManager registers a function that gets the manager at the set-up, also under [Main]: to add controllers, webhooks
// or checks. It must not register handlers or read the cache. An error fails the set-up.
func (op *Operator) WithManager(add func(ctrl.Manager) error) {
	where := registry.CallerLocation()
	switch {
	case op == nil:
		registry.AddOwnerless(fmt.Errorf("WithManager: %w", errNoOperator))
	case add == nil:
		op.registry.AddError(where, errors.New("WithManager: the function is nil"))
	default:
		late := errors.New("WithManager: called after the operator was set up, so the function never is")
		op.registry.RunIfOpen(where, late, func() {
			op.managerFunctions = append(op.managerFunctions, func(m ctrl.Manager) error {
				if err := add(m); err != nil {
					return fmt.Errorf("%s: WithManager: %w", where, err)
				}
				return nil
			})
		})
	}
}

// PeeringLock returns a lock that makes a manager's leader election follow the operator's peering, which is then
// mandatory. docs/peering.md compares it to pausing the operator alone.
//
//	m, err := ctrl.NewManager(config, ctrl.Options{
//		LeaderElection: true, LeaderElectionResourceLockInterface: op.PeeringLock(),
//	})
func (op *Operator) PeeringLock() resourcelock.Interface {
	if !op.isValid() {
		registry.AddOwnerless(fmt.Errorf("PeeringLock: %w", errNoOperator))
		return peering.NewLock("", "")
	}
	op.registry.Lock()
	defer op.registry.Unlock()
	return op.coordination.PeeringLock(defaults.Peering(op.userSettings.Peering))
}

// LeaderLock wraps the lock of a manager's leader election. After a suspension, the operator is idle from seven eighths
// of its lease until a renewal. Managers without the default timing need it, see docs/activities.md.
//
//	m, err := ctrl.NewManager(config, ctrl.Options{
//		LeaderElection: true, LeaderElectionResourceLockInterface: op.LeaderLock(lock),
//	})
func (op *Operator) LeaderLock(lock resourcelock.Interface) resourcelock.Interface {
	if !op.isValid() {
		registry.AddOwnerless(fmt.Errorf("LeaderLock: %w", errNoOperator))
		return lock
	}
	return op.coordination.Lease.WrapLock(lock)
}

// coordinationSettings returns the settings of the peering, as of the last plan.
func (op *Operator) coordinationSettings() program.CoordinationSettings {
	return program.CoordinationSettings{
		Peering:          defaults.Peering(op.userSettings.Peering),
		ResolvedPeering:  defaults.Peering(op.settings.values.Peering),
		ServedNamespaces: op.settings.scope,
		ElectionFlags:    op.flags.Election,
		Cluster:          op.flags.Cluster,
		DefaultNamespace: op.defaultNamespace,
		Shards:           op.shards(),
	}
}

// shards returns the number of ranges of objects that the replicas share; zero if one replica handles all objects.
func (op *Operator) shards() int {
	if op.flags.DeletionsOnly {
		return 0
	}
	return cmp.Or(op.flags.Election.Shards, op.settings.values.Sharding.Shards)
}
