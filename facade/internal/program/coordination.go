package program

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"sync"
	"sync/atomic"

	"github.com/go-logr/logr"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	ctrl "sigs.k8s.io/controller-runtime"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/defaults"
	"github.com/kopf-runtime/kopf-runtime/peering"
	"github.com/kopf-runtime/kopf-runtime/peering/attendance"
	"github.com/kopf-runtime/kopf-runtime/reconcilers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/logging"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/namespaces"
)

// Coordination decides whether an operator may act: by its peers, or by the lease of its manager.
type Coordination struct {
	// Operator is the name of the operator.
	Operator string
	// Lease is that of the project's manager.
	Lease peering.Lease
	// Program is true for a manager of the operator's own, Embedded for one of Run.
	Program, Embedded bool

	lock    *peering.Lock // nil unless it was asked for
	present atomic.Pointer[attendance.Attendance]
}

// CoordinationSettings are the settings that decide: as they were given, and with defaults.
type CoordinationSettings struct {
	Given, Resolved defaults.Peering
	Served          defaults.NamespaceScope
}

// Lock returns a lock that makes a manager's leader election follow the peering. All calls return the same one.
func (c *Coordination) Lock(given defaults.Peering) resourcelock.Interface {
	if c.lock == nil {
		_ = given.Resolve(c.Operator) // the set-up reports the error
		if given.Identity == "" {
			given.Identity = c.identify(context.Background())
		}
		c.lock = peering.NewLock(given.Identity, given.Name)
	}
	return c.lock
}

// HasLock reports whether the manager's leader election follows the peering.
func (c *Coordination) HasLock() bool { return c.lock != nil }

// Peers are the records of all operators of the peering that are known by now.
func (c *Coordination) Peers() []attendance.Peer {
	if present := c.present.Load(); present != nil {
		return present.Peers()
	}
	return nil
}

// Describe says how the operator finds out whether another process handles the same objects.
func (c *Coordination) Describe(by CoordinationSettings) string {
	own := by.Resolved
	switch {
	case c.HasPeers(by.Given) && !own.Mandatory && c.lock == nil:
		return fmt.Sprintf("peering %q with priority %d, if it exists", own.Name, own.Priority)
	case c.HasPeers(by.Given):
		return fmt.Sprintf("peering %q with priority %d", own.Name, own.Priority)
	case c.Program:
		return "none: run one replica"
	default:
		return "leader election of the manager, if enabled"
	}
}

// identify returns the default identity. A process of the project may have several operators in one pod.
func (c *Coordination) identify(ctx context.Context) string {
	pod := os.Getenv("POD_ID")
	if pod != "" && (!c.Program || c.Embedded) {
		return pod + "/" + c.Operator
	}
	return peering.Identity(pod, peering.Present(ctx), false)
}

// HasPeers reports whether the operator looks for peers: by default in its own program, and elsewhere if the settings
// name a peering.
func (c *Coordination) HasPeers(given defaults.Peering) bool {
	return !given.Standalone && (c.Program || given.Name != "" || given.Mandatory) || c.lock != nil
}

// peersReady is the health check for known peers, as of the last startup.
func (c *Coordination) peersReady(*http.Request) error {
	if present := c.present.Load(); present != nil {
		return present.Ready()
	}
	return nil
}

// Add adds the peering to the options and the manager, if the operator looks for peers.
func (c *Coordination) Add(m ctrl.Manager, options *reconcilers.Options, by CoordinationSettings) error {
	if !c.HasPeers(by.Given) {
		if by.Given.Idle() {
			logging.Warn(m.GetLogger(),
				"Settings of peering have no effect, as no peering is named: set Peering.Name", "operator", c.Operator)
		}
		if !c.Program {
			c.newLeaseGate(options)
		}
		return nil
	}
	before, err := c.connect(m, options, by)
	if err == nil {
		err = m.AddReadyzCheck(c.Operator+"/peering", c.peersReady)
	}
	if err != nil || before == nil {
		return err
	}
	return m.Add(before)
}

// Change changes the options of a running manager of the project, as the startup has left the settings.
func (c *Coordination) Change(
	m ctrl.Manager, options *reconcilers.Options, before reconcilers.Options, by CoordinationSettings,
) (err error) {
	switch {
	case c.lock != nil:
		options.Gate, options.Matching = before.Gate, before.Matching
	case c.HasPeers(by.Given):
		_, err = c.connect(m, options, by)
	default:
		c.newLeaseGate(options)
	}
	return err
}

// connect connects the options to the peering. It returns the part that runs before the manager has a leader, if any.
func (c *Coordination) connect(
	m ctrl.Manager, options *reconcilers.Options, by CoordinationSettings,
) (manager.Runnable, error) {
	gate, live := peering.Gate(c.newGate(options).Add()), cmp.Or(options.Matching, namespaces.NewLive())
	options.Matching = live
	member := by.Resolved.Member()
	member.Busy, member.Idle = options.Gate.Busy, options.Gate.Idle
	if c.lock != nil {
		member.Mandatory, member.Self.Identity = true, c.lock.Identity()
		gate = peering.Gates{gate, c.lock}
	}
	present, err := attendance.New(m.GetConfig(), m.GetHTTPClient(), member, gate)
	if err != nil {
		return nil, err
	}
	present.Identify(c.identify)
	c.present.Store(present)
	if patterns := by.Served.Patterns(); len(patterns) > 0 && !by.Resolved.Clusterwide {
		names, plain := patterns.Plain()
		switch {
		case plain:
			present.Follow(namespaces.NewLive(names...))
		case c.lock == nil:
			present.Follow(live)
			options.Admitted = namespaces.NewLive()
			present.Admit(options.Admitted.Set)
		default:
			return nil, errors.New("PeeringLock: which namespaces match is known to the leader only, so their " +
				"peering objects cannot decide who leads: set Peering.Clusterwide, or name the namespaces in full")
		}
		if own := options.Gate; c.lock == nil && !by.Resolved.KopfRules {
			present.PauseNamespaces(func(namespace string) attendance.Gate { return own.In(namespace) })
		}
	}
	if c.lock != nil {
		return attending{present, m.GetLogger().WithName(c.Operator)}, nil
	}
	options.Beside = beside(options.Beside, present.Begin)
	return nil, nil
}

// attending keeps up a presence in every process, whichever leads. The manager ends it after all that needs a leader.
type attending struct {
	present *attendance.Attendance
	log     logr.Logger
}

var _ manager.LeaderElectionRunnable = attending{}

// NeedLeaderElection is false: it is what decides who leads.
func (attending) NeedLeaderElection() bool { return false }

// Start runs until the context ends.
func (a attending) Start(ctx context.Context) error {
	a.present.Run(logf.IntoContext(ctx, a.log))
	return nil
}

// newGate sets a combined gate of the options and returns it. In a manager of the project, it also closes when the
// process may have lost its lease, unless the peering elects the leader.
func (c *Coordination) newGate(options *reconcilers.Options) *peering.CombinedGate {
	options.Gate = &reconcilers.Gate{}
	gate := peering.ClosedByAny(options.Gate)
	if c.Program || c.lock != nil {
		return gate
	}
	c.Lease.Follow(gate.Add())
	options.Beside = func(ctx context.Context) (rest func()) {
		return func() {
			if electsLeader() {
				c.Lease.Run(ctx)
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
