package program

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"os"
	"slices"

	ctrl "sigs.k8s.io/controller-runtime"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/serving"
	"github.com/kopf-runtime/kopf-runtime/internal/logging"
	"github.com/kopf-runtime/kopf-runtime/peering"
	"github.com/kopf-runtime/kopf-runtime/peering/sharding"
	"github.com/kopf-runtime/kopf-runtime/reconcilers"
)

// maxInstanceLength is the limit of the API for the reporting instance of an event.
const maxInstanceLength = 128

// IsSharded reports whether the replicas share the objects.
func (by CoordinationSettings) IsSharded() bool { return by.Shards > 0 }

// checkSharding returns an error if the operator would also elect a leader.
func (c *Coordination) checkSharding(by CoordinationSettings) error {
	switch {
	case by.ElectionFlags.Mode == serving.ElectAlways:
		return errors.New("Sharding.Shards excludes --leader-elect=true: one replica acts, or all of them share the " +
			"objects")
	case c.lock != nil:
		return errors.New("Sharding.Shards excludes PeeringLock: all replicas share the objects, so none may lead")
	}
	return nil
}

// replicaGroup returns the name by which the replicas of a sharded operator recognize each other among their peers, and
// "" for other operators. Replicas do not pause for each other.
func (c *Coordination) replicaGroup(by CoordinationSettings) string {
	if !by.IsSharded() {
		return ""
	}
	return c.leaseOf(by).String()
}

// connectSharding makes the operator share the objects with its replicas: it sets the ranges in the options, and adds
// the sharing of ranges to the extra work. The gate in the options must be set. Without peers, isPaused is nil. It does
// nothing for an operator that is not sharded.
func (c *Coordination) connectSharding(
	m ctrl.Manager, options *reconcilers.Options, by CoordinationSettings, isPaused func() bool,
) error {
	if !by.IsSharded() {
		return nil
	}
	own := sharding.NewOwnRanges(by.Shards)
	gate := options.Gate
	member, err := sharding.New(m.GetConfig(), m.GetHTTPClient(), sharding.Options{
		Lease: c.leaseOf(by), Identity: c.processIdentity(), Count: by.Shards,
		Paused: isPaused,
		Load: func() sharding.Load {
			objects, backlog := own.Load()
			return sharding.Load{Objects: objects, Backlog: backlog}
		},
		GateFor: func(index int) peering.AttemptGate { return gate.RangeGate(index) },
		SetRanges: func(indexes []int) {
			// Results of handlers that could not be written before a range was lost are worthless when it comes back.
			held, _ := own.Held.Current()
			for _, index := range held {
				if !slices.Contains(indexes, index) {
					gate.RangeGate(index).NoteTakeover()
				}
			}
			own.Held.Replace(indexes)
		},
	})
	if err != nil {
		return err
	}
	options.Ranges, options.Standby, options.Sharing = own, member.DescribeStandby, member.Status
	options.StartExtraWork = combineBackground(options.StartExtraWork, func(ctx context.Context) (run func()) {
		if !c.HasOwnManager && electsLeader() {
			logging.Warn(logf.FromContext(ctx), "The manager elects a leader, so only this replica takes part in "+
				"sharing the objects: disable LeaderElection of the manager", "operator", c.Operator)
		}
		return member.Begin(ctx, own.Exiting())
	})
	c.currentSharding.Store(member)
	return nil
}

// ReplicaName returns a name of this process for users: that of its pod. It is not longer than the API allows for the
// reporting instance of an event.
func (c *Coordination) ReplicaName() string {
	host, _ := os.Hostname()
	name := cmp.Or(os.Getenv("POD_ID"), host, c.Operator)
	return name[:min(len(name), maxInstanceLength)]
}

// shardingReady is a readiness check that fails until the ranges are known. It uses the sharding of the last startup.
func (c *Coordination) shardingReady(*http.Request) error {
	if member := c.currentSharding.Load(); member != nil {
		return member.CheckReady()
	}
	return nil
}
