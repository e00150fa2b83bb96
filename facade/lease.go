package kopf

import (
	"context"
	"fmt"
	"sync"

	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/registry"
	"github.com/kopf-runtime/kopf-runtime/peering"
	"github.com/kopf-runtime/kopf-runtime/reconcilers"
)

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
	return op.lease.Around(lock)
}

// newGate sets a combined gate of the options and returns it. In a manager of the project, it also closes when the
// process may have lost its lease, unless the peering elects the leader.
func (op *Operator) newGate(options *reconcilers.Options) *peering.CombinedGate {
	options.Gate = &reconcilers.Gate{}
	gate := peering.ClosedByAny(options.Gate)
	if op.program || op.lock != nil {
		return gate
	}
	op.lease.Follow(gate.Add())
	options.Beside = func(ctx context.Context) (rest func()) {
		return func() {
			if electsLeader() {
				op.lease.Run(ctx)
			}
		}
	}
	return gate
}

// newLeaseGate gives the options a gate that only the lease of a leader closes.
func (op *Operator) newLeaseGate(options *reconcilers.Options) {
	op.newGate(options)
	options.NeedsGate = electsLeader
}

// electsLeader reports whether a manager of this process leads by an election. Managers do not say that, but their
// electors have a metric.
func electsLeader() bool {
	families, _ := metrics.Registry.Gather() // others may fail, with those that do not returned
	for _, family := range families {
		if family.GetName() != "leader_election_master_status" {
			continue
		}
		for _, one := range family.GetMetric() {
			if one.GetGauge().GetValue() == 1 {
				return true
			}
		}
	}
	return false
}

// beside runs two things beside the operator.
func beside(first, second func(ctx context.Context) (rest func())) func(ctx context.Context) (rest func()) {
	if first == nil {
		return second
	}
	return func(ctx context.Context) func() {
		one, other := first(ctx), second(ctx)
		return func() {
			var running sync.WaitGroup
			defer running.Wait()
			running.Go(one)
			other()
		}
	}
}
