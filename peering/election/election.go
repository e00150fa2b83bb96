package election

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/klog/v2"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/peering"
)

// The first three are the defaults of controller-runtime.
const (
	leaseDuration = 15 * time.Second
	renewDeadline = 10 * time.Second
	retryPeriod   = 2 * time.Second
	// longestDuration limits the lease duration of other holders: an edited Lease must not stop all replicas for long.
	longestDuration = time.Minute
	// requestTimeout is the timeout of one request. It leaves time for another one before the renewal deadline.
	requestTimeout = renewDeadline / 2
	// pulse is how often it is checked whether a peering object decides.
	pulse = time.Second
	// handOver is how long the Lease is kept after a peering object has appeared: the other replicas search for new
	// kinds of such objects every minute.
	handOver = 2 * time.Minute
	// probeInterval is how often an operator that acts without a right on Leases tries again.
	probeInterval = time.Minute
)

// Options configure an election.
type Options struct {
	// Lease is the namespace and the name of the Lease.
	Lease types.NamespacedName
	// Identity is the unique name of this process.
	Identity string
	// Gate is the gate of the operator. The election closes a part of it while another process may act.
	Gate *peering.CombinedGate
	// Busy returns the number of running attempts, which only falls while the gate is closed.
	Busy func() int
	// OnTakeover is called when the operator stops acting and another process may act from then on. It must return
	// quickly.
	OnTakeover func()
	// PeersDecide reports whether a peering object decides who acts, and whether that is known. Nil means never.
	PeersDecide func() (decide, known bool)
	// PeersPause reports whether the peers demand a pause. It is set together with PeersDecide.
	PeersPause func() bool
	// Optional makes the operator act without an election if it has no right on Leases.
	Optional bool
}

// Election is the part of one process in the election of its operator. Its methods may be called concurrently.
type Election struct {
	Options

	part *peering.GatePart
	lock *leaseLock // used by one goroutine at a time
	log  logr.Logger

	mu sync.Mutex
	state
}

// New returns an election that closes its part of the gate until the operator may act. It makes no requests.
//
// # Errors
//
// It returns an error if a client cannot be made.
func New(config *rest.Config, http *http.Client, o Options) (*Election, error) {
	leases, err := coordinationv1client.NewForConfigAndClient(config, http)
	if err != nil {
		return nil, fmt.Errorf("making the client of Lease %s: %w", o.Lease, err)
	}
	e := &Election{Options: o, part: o.Gate.AddPart(), log: logr.Discard()}
	e.lock = &leaseLock{client: leases.Leases(o.Lease.Namespace), election: e}
	e.part.Set(true)
	return e, nil
}

// Begin marks the start of the election: from now on, [Election.CheckReady] fails until its state is known. It returns
// a function that takes part in the election until the context ends, and then releases the Lease.
func (e *Election) Begin(ctx context.Context) (run func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.begun, e.log = true, logf.FromContext(ctx).WithValues("lease", e.Lease.String())
	return func() { e.run(ctx) }
}

// run takes part in the election until the context ends.
func (e *Election) run(ctx context.Context) {
	for ctx.Err() == nil {
		switch decide, known := e.askPeers(); {
		case !known:
			wait(ctx, pulse)
		case decide && e.mayFollowPeers():
			e.followPeers(ctx)
		case e.prepareLease(ctx):
			e.campaign(ctx)
		}
	}
	e.mu.Lock()
	held, seconds := e.isHolder, releasedSeconds
	if !e.isOpen {
		// This operator still waits for a former holder, and so must the next one.
		seconds = int(leaseDuration / time.Second)
	}
	e.mu.Unlock()
	// Attempts that do not end may still write: the Lease must end by itself then.
	if held && e.Busy() == 0 {
		e.releaseLease(ctx, seconds)
	}
}

// campaign runs the elector until it fails to renew the Lease, until the context ends, or until the peers take over.
// All events come through the lock.
func (e *Election) campaign(ctx context.Context) {
	e.mu.Lock()
	e.elects = true
	e.mu.Unlock()
	// The errors of the elector are logged here instead: it logs one with each attempt.
	running, cancel := context.WithCancel(klog.NewContext(context.WithoutCancel(ctx), logr.Discard()))
	defer cancel()
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: e.lock, Name: e.Lease.Name,
		LeaseDuration: leaseDuration, RenewDeadline: renewDeadline, RetryPeriod: retryPeriod,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) {}, OnStoppedLeading: func() {},
		},
	})
	if err != nil {
		e.log.Error(err, "Cannot take part in the election") // the configuration is constant
		<-ctx.Done()
		return
	}
	done := make(chan struct{})
	go func() { defer close(done); elector.Run(running) }()
	defer func() { cancel(); <-done }()
	ticker := time.NewTicker(pulse)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-done:
			return // it is run again: the permission to write ends by itself
		case <-ticker.C:
			e.dropLimit()
			if decide, _ := e.askPeers(); decide && e.mayFollowPeers() {
				return
			}
		}
	}
}

// askPeers returns the answer of PeersDecide, and stores since when a peering object decides.
func (e *Election) askPeers() (decide, known bool) {
	if e.PeersDecide == nil {
		return false, true
	}
	decide, known = e.PeersDecide()
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case !decide:
		e.decided = time.Time{}
	case e.decided.IsZero():
		e.decided = time.Now()
	}
	return decide, known
}

// mayFollowPeers reports whether the operator can follow its peers instead of the Lease. If it took part in the
// election, it must hold the Lease: otherwise, the holder may not know the peering object yet. The same is true of the
// process that gets the Lease afterwards. So while this operator acts, it keeps the Lease until the others have had
// time to find the object.
func (e *Election) mayFollowPeers() bool {
	pausesIdly := e.PeersPause() && e.Busy() == 0
	e.mu.Lock()
	defer e.mu.Unlock()
	return !e.elects || e.isHolder && e.isOpen && (pausesIdly || time.Since(e.decided) > handOver)
}

// followPeers leaves the decision to the peers while there is a peering object.
func (e *Election) followPeers(ctx context.Context) {
	e.mu.Lock()
	e.openWithoutLimit()
	held := e.isHolder
	e.elects, e.isHolder, e.seen, e.version = false, false, nil, ""
	e.mu.Unlock()
	if held {
		e.log.Info("A peering object decides which process acts; releasing the Lease")
		// This operator may act among its peers, so the Lease is not marked as released.
		e.releaseLease(ctx, int(leaseDuration/time.Second))
	}
	for ctx.Err() == nil {
		if decide, known := e.askPeers(); known && !decide {
			e.log.Info("There is no peering object any more; a Lease decides which process acts")
			e.closeAtOnce()
			return
		}
		wait(ctx, pulse)
	}
}

// wait blocks for some time, or until the context ends.
func wait(ctx context.Context, duration time.Duration) {
	timer := time.NewTimer(duration)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// LeaseName returns the name of the Lease of an operator that serves these namespaces, and those with the labels; none
// of both means the whole cluster. Operators that serve different namespaces have different Leases, so that each of
// them can act.
func LeaseName(operator string, namespaces []string, labels labels.Selector) string {
	served := slices.Clone(namespaces)
	if labels != nil {
		served = append(served, "labels "+labels.String())
	}
	if len(served) == 0 {
		served = []string{"*"}
	}
	slices.Sort(served)
	digest := sha256.Sum256([]byte(strings.Join(served, "\n")))
	name := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '.' {
			return r
		}
		return '-'
	}, strings.ToLower(operator))
	return strings.Trim(name, ".-") + "-" + hex.EncodeToString(digest[:4])
}
