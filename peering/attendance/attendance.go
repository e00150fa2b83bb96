package attendance

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	clientdiscovery "k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/peering"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/logging"
)

const (
	// searchInterval is how often the kinds are searched.
	searchInterval = time.Minute
	// hastyInterval is the same while the operator waits for them.
	hastyInterval = 5 * time.Second
	// requestTimeout is how long a request may take.
	requestTimeout = 10 * time.Second
	// idleInterval is how often it is checked whether attempts have ended that outlive a membership.
	idleInterval = time.Second
)

// Attendance is the presence of one operator in its peering objects.
type Attendance struct {
	member     peering.Member
	gate       *peering.CombinedGate
	namespaces *namespaceGates // nil unless each namespace has a gate
	scope      Scope
	identify   func(context.Context) string
	api        rest.Interface
	client     client.WithWatch
	kind       string
	found      []kind
	opened     bool
	begun      atomic.Bool
	ready      atomic.Bool
	logged     string

	present sync.WaitGroup
	mu      sync.Mutex // for writing places, and for reading them beside Run
	places  map[place]presence

	admit    func(namespaces []string)
	admitted map[string]bool // by the last call of admit; nil before the first one
	answers  chan struct{}   // has an item after a place has answered
}

// New returns the attendance of a member in the ClusterKopfPeering of its name. It closes the gate until the operator
// may act.
func New(config *rest.Config, http *http.Client, member peering.Member, gate peering.Gate) (*Attendance, error) {
	a := &Attendance{
		member: member, gate: peering.ClosedByAny(gate), kind: clusterKind, places: map[place]presence{},
		scope: cluster{}, answers: make(chan struct{}, 1),
	}
	gate.Set(true)
	lister, err := clientdiscovery.NewDiscoveryClientForConfigAndClient(config, http)
	if err != nil {
		return nil, fmt.Errorf("making the discovery client for peering %q: %w", member.Name, err)
	}
	a.api = lister.RESTClient()
	a.client, err = client.NewWithWatch(config, client.Options{
		HTTPClient: http, Scheme: runtime.NewScheme(), Mapper: mapper(),
	})
	if err != nil {
		return nil, fmt.Errorf("making the client for peering %q: %w", member.Name, err)
	}
	return a, nil
}

// Scope is the set of namespaces to which an operator is restricted. They are nil while they are unknown, and the
// operator does not act then. The channel is closed when they change.
type Scope interface {
	Current() (names []string, changed <-chan struct{})
}

// Follow makes the operator join the KopfPeering of each namespace of the scope. If it already acts when a namespace is
// added, it continues unless a peer there demands a pause. It must be called before Run.
func (a *Attendance) Follow(scope Scope) { a.kind, a.scope = namespacedKind, scope }

// Admit sets a function that is called with the namespaces in which the demands of the peers are known. It is first
// called when that is so in all namespaces, and before the gate opens. In a namespace that is added later, the operator
// must not begin before that. Admit must be called before Run.
func (a *Attendance) Admit(admit func(namespaces []string)) { a.admit = admit }

// Identify sets a function that returns the identity of a member without one. It is called once, when there is a
// peering.
func (a *Attendance) Identify(identify func(context.Context) string) { a.identify = identify }

// cluster is the scope of a ClusterKopfPeering.
type cluster struct{}

// Current returns the place of cluster-scoped objects.
func (cluster) Current() (names []string, changed <-chan struct{}) { return []string{""}, nil }

// Begin starts the search for peers: from now on, [Attendance.Ready] fails until they are known. It returns a function
// that runs until the context ends.
func (a *Attendance) Begin(ctx context.Context) (run func()) {
	a.begun.Store(true)
	return func() { a.Run(ctx) }
}

// Run keeps the records of the operator until the context ends, and then removes them.
func (a *Attendance) Run(ctx context.Context) {
	a.begun.Store(true)
	searching := a.gate.Add()
	searching.Set(true)
	defer a.leaveAll()
	for ctx.Err() == nil {
		pause := searchInterval
		namespaces, changed := a.scope.Current()
		found := a.search(ctx, namespaces)
		if found {
			a.opened = true
			a.ready.Store(true)
		} else {
			pause = hastyInterval
		}
		if !found && a.member.Mandatory {
			searching.Set(true)
		}
		for end := time.After(pause); ; {
			if found && a.admitAnswered(namespaces) {
				searching.Set(false)
			}
			if a.wait(ctx, changed, end) {
				break
			}
		}
	}
}

// wait waits until a place has answered. It returns true if the kinds must be searched again before that.
func (a *Attendance) wait(ctx context.Context, changed <-chan struct{}, end <-chan time.Time) (isOver bool) {
	select {
	case <-ctx.Done():
	case <-changed:
	case <-end:
	case <-a.answers:
		return false
	}
	return true
}

// Ready returns an error until it is known whether there are peers. An operator that pauses for them is ready, and so
// is one that has not begun to search.
func (a *Attendance) Ready() error {
	if a.ready.Load() || !a.begun.Load() {
		return nil
	}
	return fmt.Errorf("it is not known yet whether there are peers in %q", a.member.Name)
}

// search finds the kinds and updates the places. It returns false if the operator must wait for them.
func (a *Attendance) search(ctx context.Context, namespaces []string) bool {
	log := logf.FromContext(ctx).WithValues("peering", a.member.Name)
	limited, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	if namespaces == nil {
		return false
	}
	found, err := find(limited, a.api, a.kind)
	switch {
	case ctx.Err() != nil:
		return false
	case err != nil && !apierrors.IsForbidden(err):
		if a.isNew(err.Error()) {
			logging.Warn(log, "Cannot look for kinds of peering objects", "reason", err.Error())
		}
		if len(a.found) == 0 {
			return false
		}
		// The kinds of the last search are still used.
	case err == nil && len(found) > 0:
		a.logged, a.found = "", found
	case a.member.Mandatory && len(a.found) == 0:
		if a.isNew(a.kind) {
			logging.Warn(log, "Waiting for a kind of peering objects, as peering is mandatory; install their CRDs",
				"resource", a.kind)
		}
		return false
	case len(a.found) == 0 && a.isNew(a.kind):
		log.V(1).Info("Peering kinds are not there; the operator acts without regard to others", "resource", a.kind)
	}
	a.updatePlaces(ctx, namespaces)
	return true
}

// isNew reports whether a text differs from the one that was logged last.
func (a *Attendance) isNew(text string) bool {
	before := a.logged
	a.logged = text
	return before != text
}
