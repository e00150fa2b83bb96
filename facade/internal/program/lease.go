package program

import (
	"context"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/kopf-runtime/kopf-runtime/peering"
	"github.com/kopf-runtime/kopf-runtime/reconcilers"
)

// newGate sets a combined gate of the options and returns it. In a manager of the project, it also closes when the
// process may have lost its lease, unless the peering elects the leader.
func (c *Coordination) newGate(options *reconcilers.Options) *peering.CombinedGate {
	options.Gate = &reconcilers.Gate{}
	gate := peering.ClosedByAny(options.Gate)
	if c.Program || c.lock != nil {
		return gate
	}
	c.lease.Follow(gate.Add())
	options.Beside = func(ctx context.Context) (rest func()) {
		return func() {
			if electsLeader() {
				c.lease.Run(ctx)
			}
		}
	}
	return gate
}

// newLeaseGate gives the options a gate that only the lease of a leader closes.
func (c *Coordination) newLeaseGate(options *reconcilers.Options) {
	c.newGate(options)
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
