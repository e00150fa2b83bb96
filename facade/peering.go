package kopf

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"

	"k8s.io/client-go/tools/leaderelection/resourcelock"
	ctrl "sigs.k8s.io/controller-runtime"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/go-logr/logr"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/defaults"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/registry"
	"github.com/kopf-runtime/kopf-runtime/peering"
	"github.com/kopf-runtime/kopf-runtime/peering/attendance"
	"github.com/kopf-runtime/kopf-runtime/reconcilers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/logging"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/namespaces"
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
	if op.lock == nil {
		p := op.given.Peering
		_ = (*defaults.Peering)(&p).Resolve(op.name) // the set-up reports the error
		if p.Identity == "" {
			p.Identity = op.identify(context.Background())
		}
		op.lock = &peeringLock{Lock: peering.NewLock(p.Identity, p.Name), identity: p.Identity}
	}
	return op.lock.Lock
}

// peeringLock is the lock of a manager.
type peeringLock struct {
	Lock     *peering.Lock
	identity string
}

// identify returns the default identity. A process of the project may have several operators in one pod.
func (op *Operator) identify(ctx context.Context) string {
	pod := os.Getenv("POD_ID")
	if pod != "" && (!op.program || op.embedding) {
		return pod + "/" + op.name
	}
	return peering.Identity(pod, peering.Present(ctx), false)
}

// hasPeers reports whether the operator looks for peers: by default in its own program, and elsewhere if the settings
// name a peering.
func (op *Operator) hasPeers() bool {
	given := op.given.Peering
	return !given.Standalone && (op.program || given.Name != "" || given.Mandatory) || op.lock != nil
}

// peersReady is the health check for known peers, as of the last startup.
func (op *Operator) peersReady(*http.Request) error {
	if present := op.present.Load(); present != nil {
		return present.Ready()
	}
	return nil
}

// addPeering adds the peering, if the operator looks for peers.
func (op *Operator) addPeering(m ctrl.Manager, options *reconcilers.Options) error {
	if !op.hasPeers() {
		if defaults.Peering(op.given.Peering).Idle() {
			logging.Warn(m.GetLogger(),
				"Settings of peering have no effect, as no peering is named: set Peering.Name", "operator", op.name)
		}
		if !op.program {
			op.newLeaseGate(options)
		}
		return nil
	}
	before, err := op.minding(m, options)
	if err == nil {
		err = m.AddReadyzCheck(op.name+"/peering", op.peersReady)
	}
	if err != nil || before == nil {
		return err
	}
	return m.Add(before)
}

// minding connects the options to the peering. It returns the part that runs before the manager has a leader, if any.
func (op *Operator) minding(m ctrl.Manager, options *reconcilers.Options) (manager.Runnable, error) {
	told, live := peering.Gate(op.newGate(options).Add()), cmp.Or(options.Matching, namespaces.NewLive())
	options.Matching = live
	own := op.settings.values
	member := (*defaults.Peering)(&own.Peering).Member()
	member.Busy, member.Idle = options.Gate.Busy, options.Gate.Idle
	if op.lock != nil {
		member.Mandatory, member.Self.Identity = true, op.lock.identity
		told = peering.Gates{told, op.lock.Lock}
	}
	present, err := attendance.New(m.GetConfig(), m.GetHTTPClient(), member, told)
	if err != nil {
		return nil, err
	}
	present.Identify(op.identify)
	op.present.Store(present)
	if patterns := op.settings.scope.Patterns(); len(patterns) > 0 && !own.Peering.Clusterwide {
		names, plain := patterns.Plain()
		switch {
		case plain:
			present.Follow(namespaces.NewLive(names...))
		case op.lock == nil:
			present.Follow(live)
			options.Admitted = namespaces.NewLive()
			present.Admit(options.Admitted.Set)
		default:
			return nil, errors.New("PeeringLock: which namespaces match is known to the leader only, so their " +
				"peering objects cannot decide who leads: set Peering.Clusterwide, or name the namespaces in full")
		}
		if gate := options.Gate; op.lock == nil && !own.Peering.KopfRules {
			present.PauseNamespaces(func(namespace string) attendance.Gate { return gate.In(namespace) })
		}
	}
	if op.lock != nil {
		return attending{present, m.GetLogger().WithName(op.name)}, nil
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
