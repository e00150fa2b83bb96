package kopf

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"

	"k8s.io/client-go/tools/leaderelection/resourcelock"
	ctrl "sigs.k8s.io/controller-runtime"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/go-logr/logr"

	"github.com/kopf-runtime/kopf-runtime/peering"
	"github.com/kopf-runtime/kopf-runtime/peering/attendance"
	"github.com/kopf-runtime/kopf-runtime/reconcilers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/logging"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/namespaces"
)

// PeeringLock has a manager elect its leader by the operator's peering: whoever acts by the rules of peering leads.
// Give it to the manager, and then the manager to [Operator.SetupWithManager]:
//
//	m, err := ctrl.NewManager(config, ctrl.Options{
//		LeaderElection: true, LeaderElectionResourceLockInterface: op.PeeringLock(),
//	})
//
// With it, all of the manager follows the peering, and not this operator alone: all that needs a leader is started when
// the operator may act, and the manager ends when it must not act any more. Every process that may lead has a record,
// and peering is mandatory, as otherwise all of them would lead. Without it, the operator pauses and goes on within its
// process, which costs less: docs/peering.md compares them.
//
// When another operator takes over, handlers have the PauseTimeout of [PeeringSettings]; but the manager gives up after
// its RenewDeadline, with the error "leader election lost".
func (op *Operator) PeeringLock() resourcelock.Interface {
	if !op.valid() {
		addOwnerless(fmt.Errorf("PeeringLock: %w", errNoOperator))
		return peering.NewLock("", "")
	}
	op.mu.Lock()
	defer op.mu.Unlock()
	if op.lock == nil {
		p := op.given.Peering
		_ = p.resolve(op.name) // the set-up tells
		if p.Identity == "" {
			p.Identity = op.identify(context.Background())
		}
		op.lock = &peeringLock{Lock: peering.NewLock(p.Identity, p.Name), identity: p.Identity}
	}
	return op.lock.Lock
}

// peeringLock is the lock that a manager has.
type peeringLock struct {
	Lock     *peering.Lock
	identity string
}

// identify gives the identity by default. A process of the project's may have several operators in one pod.
func (op *Operator) identify(ctx context.Context) string {
	pod := os.Getenv("POD_ID")
	if pod != "" && (!op.program || op.embedding) {
		return pod + "/" + op.name
	}
	return peering.Identity(pod, peering.Present(ctx), false)
}

// hasPeers tells whether the operator looks for peers: by itself in its own program, and elsewhere if that is asked
// for.
func (op *Operator) hasPeers() bool {
	given := op.given.Peering
	return !given.Standalone && (op.program || given.Name != "" || given.Mandatory) || op.lock != nil
}

// peersReady is the check of whether peers are known: of the attendance as of the last startup.
func (op *Operator) peersReady(*http.Request) error {
	if present := op.present.Load(); present != nil {
		return present.Ready()
	}
	return nil
}

// addPeering has the operator mind its peers, if it looks for any.
func (op *Operator) addPeering(m ctrl.Manager, options *reconcilers.Options) error {
	if !op.hasPeers() {
		if op.given.Peering.idle() {
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

// minding has the options mind the peers of the operator. It gives what runs before the manager has a leader, if any.
func (op *Operator) minding(m ctrl.Manager, options *reconcilers.Options) (manager.Runnable, error) {
	told, live := peering.Gate(op.newGate(options).Take()), cmp.Or(options.Matching, namespaces.NewLive())
	options.Matching = live
	own := op.settings.values
	member := own.Peering.member()
	member.Busy, member.Idle = options.Gate.Busy, options.Gate.Idle
	if op.lock != nil {
		member.Mandatory, member.Self.Identity = true, op.lock.identity
		told = both{told, op.lock.Lock}
	}
	present, err := attendance.New(m.GetConfig(), m.GetHTTPClient(), member, told)
	if err != nil {
		return nil, err
	}
	present.Identify(op.identify)
	op.present.Store(present)
	if patterns := own.patterns(); len(patterns) > 0 && !own.Peering.Clusterwide {
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
			present.Part(func(namespace string) attendance.Gate { return gate.In(namespace) })
		}
	}
	if op.lock != nil {
		return attending{present, m.GetLogger().WithName(op.name)}, nil
	}
	options.Beside = beside(options.Beside, present.Begin)
	return nil, nil
}

// both are two gates that are told the same.
type both [2]peering.Gate

// Set closes both gates, or opens them.
func (b both) Set(closed bool) {
	for _, gate := range b {
		gate.Set(closed)
	}
}

// AllowWritesUntil tells both gates.
func (b both) AllowWritesUntil(end time.Time) {
	for _, gate := range b {
		gate.AllowWritesUntil(end)
	}
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
