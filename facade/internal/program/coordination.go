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

	"k8s.io/client-go/tools/leaderelection/resourcelock"
	ctrl "sigs.k8s.io/controller-runtime"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/go-logr/logr"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/defaults"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/serving"
	"github.com/kopf-runtime/kopf-runtime/internal/logging"
	"github.com/kopf-runtime/kopf-runtime/internal/namespaces"
	"github.com/kopf-runtime/kopf-runtime/peering"
	"github.com/kopf-runtime/kopf-runtime/peering/sharding"
	"github.com/kopf-runtime/kopf-runtime/reconcilers"
)

// Coordination decides whether an operator may act: by its peers, or by the lease of its manager. It guards against two
// processes that handle the same objects.
//
// There are three cases. An operator with peers pauses while a peer has priority. With the lock, the peering also
// elects the leader of the manager. Without peers, an operator in a manager of the project pauses while the lease may
// be lost.
type Coordination struct {
	// Operator is the name of the operator.
	Operator string
	// Lease follows the lease of the project's manager.
	Lease peering.Lease
	// HasOwnManager is true if the operator has its own manager, and Embedded if this manager belongs to a call of Run.
	HasOwnManager, Embedded bool
	// PodNamespace returns the namespace of the pod, or "" outside of pods. Nil reads it from the service account.
	PodNamespace func() string

	lock *peering.Lock // nil unless the project has requested it
	// currentAttendance and currentSharding are those of the last set-up or startup. Health checks read them
	// concurrently.
	currentAttendance atomic.Pointer[peering.Attendance]
	currentSharding   atomic.Pointer[sharding.Sharding]
}

// CoordinationSettings contains the peering settings as they were given, and with defaults.
type CoordinationSettings struct {
	Peering, ResolvedPeering defaults.Peering
	ServedNamespaces         defaults.NamespaceScope
	ElectionFlags            serving.ElectionFlags
	Cluster                  serving.ClusterConfig
	// DefaultNamespace returns the default namespace of the credentials. It may be nil.
	DefaultNamespace func() string
	// Shards is the number of ranges among which the replicas share the objects. Zero lets one replica handle all of
	// them.
	Shards int
}

// PeeringLock returns a lock that makes a manager's leader election follow the peering. All calls return the same one.
// The caller holds the lock of the registry.
func (c *Coordination) PeeringLock(given defaults.Peering) resourcelock.Interface {
	if c.lock == nil {
		_ = given.ResolveDefaults(c.Operator) // the set-up reports the error
		// The lock needs the identity now, before there is a context of the manager.
		if given.Identity == "" {
			given.Identity = c.defaultIdentity(context.Background())
		}
		c.lock = peering.NewLock(given.Identity, given.Name)
	}
	return c.lock
}

// HasLock reports whether the manager's leader election follows the peering.
func (c *Coordination) HasLock() bool { return c.lock != nil }

// KnownPeers returns the known records of all operators in the peering, or nil before the first set-up.
func (c *Coordination) KnownPeers() []peering.Peer {
	if present := c.currentAttendance.Load(); present != nil {
		return present.KnownPeers()
	}
	return nil
}

// DescribeMode returns the way in which the operator detects other processes with the same objects, for the log line at
// the start.
func (c *Coordination) DescribeMode(by CoordinationSettings) string {
	own, elects := by.ResolvedPeering, c.Elects(by)
	if by.IsSharded() {
		shared := fmt.Sprintf("the replicas share %d ranges of objects by Leases of %s", by.Shards, c.leaseOf(by))
		if c.HasPeers(by.Peering) {
			return fmt.Sprintf("%s; all pause by peering %q with priority %d", shared, own.Name, own.Priority)
		}
		return shared
	}
	switch {
	case c.HasPeers(by.Peering) && elects:
		return fmt.Sprintf("peering %q with priority %d, if it exists, or Lease %s", own.Name, own.Priority,
			c.leaseOf(by))
	case elects:
		return "Lease " + c.leaseOf(by).String()
	case c.HasPeers(by.Peering) && !own.Mandatory && c.lock == nil:
		return fmt.Sprintf("peering %q with priority %d, if it exists", own.Name, own.Priority)
	case c.HasPeers(by.Peering):
		return fmt.Sprintf("peering %q with priority %d", own.Name, own.Priority)
	case c.HasOwnManager:
		return "none: run one replica"
	default:
		return "leader election of the manager, if enabled"
	}
}

// defaultIdentity returns the default identity. Operators that share a process also share POD_ID, so the name of the
// operator is added. A program has one operator, and uses the identity as Kopf makes it.
func (c *Coordination) defaultIdentity(ctx context.Context) string {
	pod := os.Getenv("POD_ID")
	if pod != "" && (!c.HasOwnManager || c.Embedded) {
		return pod + "/" + c.Operator
	}
	return peering.OperatorIdentity(pod, peering.CurrentProcess(ctx), false)
}

// HasPeers reports whether the operator looks for peers. By default, a program does. In other managers, the settings
// must name a peering, or the project must have requested the lock.
func (c *Coordination) HasPeers(given defaults.Peering) bool {
	return !given.Standalone && (c.HasOwnManager || given.Name != "" || given.Mandatory) || c.lock != nil
}

// peersReady is a readiness check that fails until the peers are known. It uses the attendance of the last startup.
func (c *Coordination) peersReady(*http.Request) error {
	if present := c.currentAttendance.Load(); present != nil {
		return present.CheckReady()
	}
	return nil
}

// AddToManager connects the operator to its peering, if it looks for peers, and adds a readiness check. Otherwise, in a
// manager of the project, the operator follows the lease of the manager.
func (c *Coordination) AddToManager(m ctrl.Manager, options *reconcilers.Options, by CoordinationSettings) error {
	if by.IsSharded() {
		if err := c.checkSharding(by); err != nil {
			return err
		}
		if err := m.AddReadyzCheck(c.Operator+"/sharding", c.shardingReady); err != nil {
			return err
		}
	}
	if !c.HasPeers(by.Peering) {
		// Other peering settings without a name are probably a mistake: the operator would run without peers.
		if by.Peering.HasUnusedFields() {
			logging.Warn(m.GetLogger(),
				"Settings of peering have no effect, as no peering is named: set Peering.Name", "operator", c.Operator)
		}
		switch {
		case by.IsSharded():
			c.newGate(options)
			return c.connectSharding(m, options, by, nil)
		case c.Elects(by):
			return c.addElection(m, options, c.newGate(options), by, nil, nil)
		// Otherwise, a program without peers has neither a lease nor a gate: it must run as one replica.
		case !c.HasOwnManager:
			c.newLeaseGate(options)
		}
		return nil
	}
	before, err := c.connectPeering(m, options, by)
	if err == nil {
		err = m.AddReadyzCheck(c.Operator+"/peering", c.peersReady)
	}
	if err != nil || before == nil {
		return err
	}
	return m.Add(before)
}

// UpdateRunningOptions updates the options in a running manager of the project, because a startup handler may have
// changed the settings. Unlike [Coordination.AddToManager], it adds nothing to the manager.
func (c *Coordination) UpdateRunningOptions(
	m ctrl.Manager, options *reconcilers.Options, before reconcilers.Options, by CoordinationSettings,
) (err error) {
	switch {
	case c.lock != nil:
		// The elector already uses the lock, so the gate that belongs to it must stay.
		options.Gate, options.MatchingNamespaces = before.Gate, before.MatchingNamespaces
	case c.HasPeers(by.Peering):
		_, err = c.connectPeering(m, options, by)
	case by.IsSharded():
		c.newGate(options)
		err = c.connectSharding(m, options, by, nil)
	default:
		c.newLeaseGate(options)
	}
	return err
}

// connectPeering connects the options to the peering. It returns the part that must run before the manager has a
// leader, or nil.
func (c *Coordination) connectPeering(
	m ctrl.Manager, options *reconcilers.Options, by CoordinationSettings,
) (manager.Runnable, error) {
	combined, live, peers := c.newGate(options), cmp.Or(options.MatchingNamespaces, namespaces.NewLive()), &peersGate{}
	gate := peering.Gates{combined.AddPart(), peers}
	options.MatchingNamespaces = live
	// Peers wait for the running attempts of this operator, so its record contains their number.
	member := by.ResolvedPeering.AsMember()
	member.Busy, member.Idle, member.LeaseDecides = options.Gate.Busy, options.Gate.Idle, c.Elects(by)
	member.Self.Group = c.replicaGroup(by)
	// An operator that elects the leader by its peers must not lead without a peering object, so the object is
	// mandatory. Both the engine's gate and the lock follow the membership.
	if c.lock != nil {
		member.Mandatory, member.Self.Identity = true, c.lock.Identity()
		gate = append(gate, c.lock)
	}
	present, err := peering.NewAttendance(m.GetConfig(), m.GetHTTPClient(), member, gate)
	if err != nil {
		return nil, err
	}
	present.OnMissingIdentity(c.defaultIdentity)
	c.currentAttendance.Store(present)
	// With namespaces, the operator joins the KopfPeering of each of them instead of the ClusterKopfPeering.
	if patterns := by.ServedNamespaces.ServedPatterns(); len(patterns) > 0 && !by.ResolvedPeering.Clusterwide {
		names, plain := patterns.PlainNames()
		switch {
		case plain:
			// All namespaces are named in full, so they are known without the API server.
			present.JoinNamespaces(namespaces.NewLive(names...))
		case c.lock == nil:
			// Patterns are resolved while the operator runs. A new namespace is served as soon as the demands of its
			// peers are known.
			present.JoinNamespaces(live)
			options.AdmittedNamespaces = namespaces.NewLive()
			present.OnAdmittedNamespaces(options.AdmittedNamespaces.Replace)
		default:
			// Only the leader resolves patterns, but here the namespaces would have to be known before there is a
			// leader.
			return nil, errors.New("PeeringLock: which namespaces match is known to the leader only, so their " +
				"peering objects cannot decide who leads: set Peering.Clusterwide, or name the namespaces in full")
		}
		// By Kopf's rules, a peer in one namespace pauses the whole operator. Otherwise, it pauses only this namespace.
		// An elector has one state for all namespaces.
		if own := options.Gate; c.lock == nil && !by.ResolvedPeering.KopfRules {
			present.PauseNamespaces(func(namespace string) peering.AttemptGate {
				return own.NamespaceGate(namespace)
			})
		}
	}
	if c.lock != nil {
		return keepAttendance(present, m.GetLogger().WithName(c.Operator)), nil
	}
	// The search for peers starts with the operator and ends after the last handler.
	options.StartExtraWork = combineBackground(options.StartExtraWork, present.BeginSearch)
	if c.Elects(by) {
		return nil, c.addElection(m, options, combined, by, present, peers)
	}
	return nil, c.connectSharding(m, options, by, peers.closed.Load)
}

// keepAttendance keeps the records of this process in the peering while the manager runs, whether or not the process
// leads: the attendance decides that. The manager stops it after everything that needs leader election.
func keepAttendance(present *peering.Attendance, log logr.Logger) onEachReplica {
	return func(ctx context.Context) error {
		present.Run(logf.IntoContext(ctx, log))
		return nil
	}
}

// newGate sets a combined gate in the options and returns it. In a manager of the project, the gate also closes when
// the process may have lost its lease, unless the peering elects the leader.
func (c *Coordination) newGate(options *reconcilers.Options) *peering.CombinedGate {
	options.Gate = &reconcilers.Gate{}
	gate := peering.ClosedByAny(options.Gate)
	if c.HasOwnManager || c.lock != nil {
		return gate
	}
	c.Lease.SetGate(gate.AddPart())
	// Whether there is a leader election is known only when the operator starts, because managers do not export it.
	options.StartExtraWork = func(ctx context.Context) (rest func()) {
		return func() {
			if electsLeader() {
				c.Lease.WatchForSuspensions(ctx)
			}
		}
	}
	return gate
}

// newLeaseGate sets a gate that only the lease of a leader closes. Without a leader election, objects bypass the gate.
func (c *Coordination) newLeaseGate(options *reconcilers.Options) {
	c.newGate(options)
	options.NeedsGate = electsLeader
}

// electsLeader reports whether a manager of this process leads after an election. Managers do not export that, but each
// elector sets the metric leader_election_master_status.
func electsLeader() bool {
	families, _ := metrics.Registry.Gather() // an error concerns other collectors; the rest is returned
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

// combineBackground combines two functions that run beside the operator. They begin one after the other. The result
// runs both rests concurrently and returns when both have ended.
func combineBackground(first, second func(ctx context.Context) (rest func())) func(ctx context.Context) (rest func()) {
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
