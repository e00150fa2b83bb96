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
	// scan is how often the kinds are looked for.
	scan = time.Minute
	// hasty is the same while the operator waits for them, or for an answer.
	hasty = 5 * time.Second
	// patience is how long a request of the search may take.
	patience = 10 * time.Second
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
	said       string

	places  map[place]presence
	present sync.WaitGroup
	seeing  sync.Mutex
	seen    map[place]*peering.Membership // for whoever asks meanwhile

	admit    func(namespaces []string) // nil if nobody asks
	admitted map[string]bool           // namespaces that were given to it; nil before the first time
	answers  chan struct{}             // a place may have answered
}

// New makes the attendance of a member in the ClusterKopfPeering of its name. The gate is closed from then on until the
// operator may act.
func New(config *rest.Config, http *http.Client, member peering.Member, gate peering.Gate) (*Attendance, error) {
	a := &Attendance{
		member: member, gate: peering.ClosedByAny(gate), kind: clusterKind, places: map[place]presence{},
		scope: cluster{}, answers: make(chan struct{}, 1), seen: map[place]*peering.Membership{},
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

// Scope is the set of namespaces that an operator is restricted to. They are nil as long as they are not known: then it
// does not act. What is closed when they change comes with them.
type Scope interface {
	Current() (names []string, changed <-chan struct{})
}

// Follow has the operator present in the KopfPeering of each namespace, as they come and go. In one that comes while it
// acts already, it goes on unless a peer has to be regarded. It is called before Run.
func (a *Attendance) Follow(scope Scope) { a.kind, a.scope = namespacedKind, scope }

// Admit gives what is called with the namespaces in which it is known what peers ask for, as there is an answer from
// all their peering objects, or there are none: for the first time when it is so in all of them, and before the gate is
// opened. In one that comes later, the operator is not to begin before that. It is called before Run.
func (a *Attendance) Admit(admit func(namespaces []string)) { a.admit = admit }

// Identify gives what is asked for the identity, once, when there is a peering, if the member has none.
func (a *Attendance) Identify(identify func(context.Context) string) { a.identify = identify }

// cluster is the scope of a ClusterKopfPeering.
type cluster struct{}

// Current is the place of objects without a namespace.
func (cluster) Current() (names []string, changed <-chan struct{}) { return []string{""}, nil }

// Begin begins to look for peers: from now on, it is not [Attendance.Ready] before they are known. It gives what runs
// until the context ends.
func (a *Attendance) Begin(ctx context.Context) (run func()) {
	a.begun.Store(true)
	return func() { a.Run(ctx) }
}

// Run keeps the operator present until the context ends; then it removes all of its records.
func (a *Attendance) Run(ctx context.Context) {
	a.begun.Store(true)
	search := a.gate.Add()
	search.Set(true)
	defer a.leaveAll()
	for ctx.Err() == nil {
		pause := scan
		namespaces, changed := a.scope.Current()
		found := a.look(ctx, namespaces)
		if found {
			a.opened = true
			a.ready.Store(true)
		} else {
			pause = hasty
		}
		if !found && a.member.Mandatory {
			search.Set(true)
		}
		for end := time.After(pause); ; {
			if found && a.admitAll(namespaces) {
				search.Set(false)
			}
			if a.rest(ctx, changed, end) {
				break
			}
		}
	}
}

// rest waits until the kinds are to be looked for again, or a place has answered.
func (a *Attendance) rest(ctx context.Context, changed <-chan struct{}, end <-chan time.Time) (again bool) {
	select {
	case <-ctx.Done():
	case <-changed:
	case <-end:
	case <-a.answers:
		return false
	}
	return true
}

// Ready is an error until it is known whether there are peers. An operator that pauses for them is in order, and so is
// one that is not looking for them yet.
func (a *Attendance) Ready() error {
	if a.ready.Load() || !a.begun.Load() {
		return nil
	}
	return fmt.Errorf("it is not known yet whether there are peers in %q", a.member.Name)
}

// look finds the kinds, and the places in them. It is false if the operator must wait for them.
func (a *Attendance) look(ctx context.Context, namespaces []string) bool {
	log := logf.FromContext(ctx).WithValues("peering", a.member.Name)
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if namespaces == nil {
		return false
	}
	found, err := find(limited, a.api, a.kind)
	switch {
	case ctx.Err() != nil:
		return false
	case err != nil && !apierrors.IsForbidden(err):
		if a.news(err.Error()) {
			logging.Warn(log, "Cannot look for kinds of peering objects", "reason", err.Error())
		}
		if len(a.found) == 0 {
			return false
		}
		// What was found is followed nevertheless.
	case err == nil && len(found) > 0:
		a.said, a.found = "", found
	case a.member.Mandatory && len(a.found) == 0:
		if a.news(a.kind) {
			logging.Warn(log, "Waiting for a kind of peering objects, as peering is mandatory; install their CRDs",
				"resource", a.kind)
		}
		return false
	case len(a.found) == 0 && a.news(a.kind):
		log.V(1).Info("Peering kinds are not there; the operator acts without regard to others", "resource", a.kind)
	}
	a.attend(ctx, namespaces)
	return true
}

// news tells whether something is to be said that was not said last.
func (a *Attendance) news(text string) bool {
	before := a.said
	a.said = text
	return before != text
}
