package peering

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	clientdiscovery "k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/internal/logging"
)

// The intervals trade the load on the API server for the delay until a new kind of peering objects is used.
const (
	// searchInterval is how often the kinds are searched.
	searchInterval = time.Minute
	// shortSearchInterval is how often the kinds are searched while the operator waits for them.
	shortSearchInterval = 5 * time.Second
	// requestTimeout is the timeout of one request.
	requestTimeout = 10 * time.Second
	// idleInterval is how often the attempts that outlive a membership are counted.
	idleInterval = time.Second
)

// Attendance is the presence of one operator in all of its peering objects. Its set-up methods must be called before
// [Attendance.Run]; [Attendance.CheckReady] and [Attendance.KnownPeers] may be called at any time.
type Attendance struct {
	member            Member
	gate              *CombinedGate
	namespaces        *namespaceGates              // nil unless each namespace has a gate
	scope             Scope                        // the namespaces to join; by default, the ClusterKopfPeering
	identify          func(context.Context) string // for a member without an identity; may be nil
	api               rest.Interface
	client            client.WithWatch
	kind              string        // ClusterKopfPeering or KopfPeering
	servedKinds       []peeringKind // by the last search that found any
	mayAct            bool          // the operator may act: new members join as acting ones
	hasSearchBegun    atomic.Bool   // the search has begun
	ready             atomic.Bool   // a search has succeeded
	lastLoggedProblem string        // the last logged problem, to log each once

	memberships sync.WaitGroup // of memberships and their watches
	mu          sync.Mutex     // for writing places, and for reading them outside of Run
	places      map[place]presence

	onAdmitted         func(namespaces []string)
	admittedNamespaces map[string]bool // by the last call of admit; nil before the first one
	answers            chan struct{}   // has an item after a place has answered
}

// NewAttendance returns the attendance of a member in the ClusterKopfPeering of its name. It closes the gate until the
// operator may act.
//
// # Errors
//
// It returns an error if a client cannot be made. It makes no requests.
func NewAttendance(config *rest.Config, http *http.Client, member Member, gate WriteGate) (*Attendance, error) {
	a := &Attendance{
		member: member, gate: ClosedByAny(gate), kind: clusterKind, places: map[place]presence{},
		scope: cluster{}, answers: make(chan struct{}, 1),
	}
	// CombinedGate sets the gate only with its first change, so it is closed here.
	gate.Set(true)
	lister, err := clientdiscovery.NewDiscoveryClientForConfigAndClient(config, http)
	if err != nil {
		return nil, fmt.Errorf("making the discovery client for peering %q: %w", member.Name, err)
	}
	a.api = lister.RESTClient()
	a.client, err = client.NewWithWatch(config, client.Options{
		HTTPClient: http, Scheme: runtime.NewScheme(), Mapper: newStaticMapper(),
	})
	if err != nil {
		return nil, fmt.Errorf("making the client for peering %q: %w", member.Name, err)
	}
	return a, nil
}

// Scope is the set of namespaces to which an operator is restricted. Current returns nil while they are
// unknown; the operator does not act until they are known. The channel is closed when the namespaces change.
type Scope interface {
	Current() (names []string, changed <-chan struct{})
}

// JoinNamespaces makes the operator join the KopfPeering of each namespace of the scope. If it already acts when a
// namespace is added, it continues unless a peer there demands a pause.
func (a *Attendance) JoinNamespaces(scope Scope) { a.kind, a.scope = namespacedKind, scope }

// OnAdmittedNamespaces sets a function that is called with the namespaces in which the demands of the peers are known.
// Unless each namespace has a gate of its own, the first call comes when they are known in all namespaces. It always
// comes before the operator's gate opens. A namespace that is added later is reported when its demands are known; the
// operator must not begin there before that.
func (a *Attendance) OnAdmittedNamespaces(admit func(namespaces []string)) { a.onAdmitted = admit }

// OnMissingIdentity sets a function that returns the identity of a member without one. It is called once, when the
// first peering kind is found: an operator without peering does not look up its host.
func (a *Attendance) OnMissingIdentity(identify func(context.Context) string) { a.identify = identify }

// cluster is the scope of a ClusterKopfPeering, which never changes.
type cluster struct{}

// Current returns the empty namespace of cluster-scoped objects.
func (cluster) Current() (names []string, changed <-chan struct{}) { return []string{""}, nil }

// BeginSearch marks the start of the search for peers: from now on, [Attendance.CheckReady] fails until they are known.
// It returns a function that runs the attendance until the context ends.
func (a *Attendance) BeginSearch(ctx context.Context) (run func()) {
	a.hasSearchBegun.Store(true)
	return func() { a.Run(ctx) }
}

// Run keeps the records of the operator until the context ends, and then removes them.
func (a *Attendance) Run(ctx context.Context) {
	a.hasSearchBegun.Store(true)
	// This part of the gate stays closed until a search has succeeded and the first namespaces are admitted.
	searching := a.gate.AddPart()
	searching.Set(true)
	// The records are removed even if the context has ended: memberships have contexts of their own.
	defer a.leaveAll()
	for ctx.Err() == nil {
		pause := searchInterval
		namespaces, changed := a.scope.Current()
		found := a.searchKinds(ctx, namespaces)
		if found {
			a.mayAct = true
			a.ready.Store(true)
		} else {
			pause = shortSearchInterval
		}
		// Answers of places are evaluated between two searches, because the gate must not wait for the next search.
		for end := time.After(pause); ; {
			if found && a.admitAnswered(namespaces) {
				searching.Set(false)
			}
			if a.waitForAnswer(ctx, changed, end) {
				break
			}
		}
	}
}

// waitForAnswer waits for an answer of a place, for a change of the namespaces, or for the end of the interval. It
// returns false after an answer, and true if the kinds must be searched again.
func (a *Attendance) waitForAnswer(ctx context.Context, changed <-chan struct{}, end <-chan time.Time) (isOver bool) {
	select {
	case <-ctx.Done():
	case <-changed:
	case <-end:
	case <-a.answers:
		return false
	}
	return true
}

// CheckReady returns an error until a search has found whether there are peers. An operator that pauses for them is
// ready, and so is one that has not begun to search: a rolling update would otherwise wait for the pod that it
// replaces.
func (a *Attendance) CheckReady() error {
	if a.ready.Load() || !a.hasSearchBegun.Load() {
		return nil
	}
	return fmt.Errorf("it is not known yet whether there are peers in %q", a.member.Name)
}

// searchKinds finds the kinds and updates the places. It returns false if the operator must wait for the kinds.
func (a *Attendance) searchKinds(ctx context.Context, namespaces []string) bool {
	log := logf.FromContext(ctx).WithValues("peering", a.member.Name)
	limited, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	// The namespaces are not known yet.
	if namespaces == nil {
		return false
	}
	found, err := findServedKinds(limited, a.api, a.kind)
	switch {
	case ctx.Err() != nil:
		return false
	// A forbidden request counts as the absence of the kinds. Any other error can be temporary, so the operator waits,
	// or continues with the kinds of the last search.
	case err != nil && !apierrors.IsForbidden(err):
		if a.isNewProblem(err.Error()) {
			logging.Warn(log, "Cannot look for kinds of peering objects", "reason", err.Error())
		}
		if len(a.servedKinds) == 0 {
			return false
		}
	// If all kinds disappear later, the last ones stay in use: their memberships notice the missing objects.
	case err == nil && len(found) > 0:
		a.lastLoggedProblem, a.servedKinds = "", found
	case a.member.Mandatory && len(a.servedKinds) == 0:
		if a.isNewProblem(a.kind) {
			logging.Warn(log, "Waiting for a kind of peering objects, as peering is mandatory; install their CRDs",
				"resource", a.kind)
		}
		return false
	case len(a.servedKinds) == 0 && a.isNewProblem(a.kind):
		log.V(1).Info("Peering kinds are not there, so the operator has no peers", "resource", a.kind)
	}
	a.updatePlaces(ctx, namespaces)
	return true
}

// isNewProblem reports whether a text differs from the one that was logged last, and stores it. Searches repeat, so
// each problem is logged once.
func (a *Attendance) isNewProblem(text string) bool {
	before := a.lastLoggedProblem
	a.lastLoggedProblem = text
	return before != text
}

// Peer is a record in a peering object, as it was last seen. It is encoded for the console.
type Peer struct {
	Identity string `json:"identity"`
	// IsOwn is true for the record of the operator itself.
	IsOwn bool `json:"own,omitempty"`
	// Namespace is the namespace of the peering object. It is empty for a ClusterKopfPeering.
	Namespace string `json:"namespace,omitempty"`
	Priority  int    `json:"priority"`
	// LastSeen is when the record was written, by the clock of its operator. Until is when it ends.
	LastSeen time.Time `json:"lastSeen"`
	Until    time.Time `json:"until"`
	// Runtime is empty for operators of Kopf.
	Runtime string `json:"runtime,omitempty"`
	// Busy is the number of running attempts that the operator reports, plus one while it may start more. Nil is
	// unknown.
	Busy *int `json:"busy,omitempty"`
}

// KnownPeers returns all known records of all peering objects, sorted by namespace and identity. It makes no requests.
func (a *Attendance) KnownPeers() (all []Peer) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for at, here := range a.places {
		own := here.Self()
		for identity, record := range here.NewestRecords() {
			all = append(all, Peer{
				Identity: identity, IsOwn: identity == own.Identity, Namespace: at.namespace, Priority: record.Priority,
				LastSeen: record.LastSeen.UTC(), Until: record.ExpiresAt().UTC(), Runtime: record.Runtime,
				Busy: record.Busy,
			})
		}
	}
	slices.SortFunc(all, func(a, b Peer) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Identity, b.Identity))
	})
	return all
}

// PeersDecide reports whether the records of a peering object decide who acts. Without any, this operator acts as if it
// were alone. The answer is unknown until the kinds were searched, and the API server has answered for all objects.
func (a *Attendance) PeersDecide() (decide, known bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	known = a.ready.Load()
	for _, here := range a.places {
		published, answered := here.IsPublished()
		decide, known = decide || published, known && answered
	}
	return decide, known || decide
}
