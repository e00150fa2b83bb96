package kopf

import (
	"fmt"

	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/defaults"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/program"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/registry"
	"github.com/kopf-runtime/kopf-runtime/peering"
)

// PeeringLock returns a lock that makes a manager's leader election follow the operator's peering, which is then
// mandatory. docs/peering.md compares it to pausing the operator alone.
//
//	m, err := ctrl.NewManager(config, ctrl.Options{
//		LeaderElection: true, LeaderElectionResourceLockInterface: op.PeeringLock(),
//	})
func (op *Operator) PeeringLock() resourcelock.Interface {
	if !op.valid() {
		registry.AddOwnerless(fmt.Errorf("PeeringLock: %w", errNoOperator))
		return peering.NewLock("", "")
	}
	op.registry.Lock()
	defer op.registry.Unlock()
	return op.coordination.Lock(defaults.Peering(op.given.Peering))
}

// LeaderLock wraps the lock of a manager's leader election. After a suspension, the operator is idle from seven eighths
// of its lease until a renewal. Managers without the default timing need it, see docs/activities.md.
//
//	m, err := ctrl.NewManager(config, ctrl.Options{
//		LeaderElection: true, LeaderElectionResourceLockInterface: op.LeaderLock(lock),
//	})
func (op *Operator) LeaderLock(lock resourcelock.Interface) resourcelock.Interface {
	if !op.valid() {
		registry.AddOwnerless(fmt.Errorf("LeaderLock: %w", errNoOperator))
		return lock
	}
	return op.coordination.LeaderLock(lock)
}

// coordinationSettings are those of the last plan.
func (op *Operator) coordinationSettings() program.CoordinationSettings {
	return program.CoordinationSettings{
		Given: defaults.Peering(op.given.Peering), Resolved: defaults.Peering(op.settings.values.Peering),
		Served: op.settings.scope,
	}
}
