package attendance

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
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
	member peering.Member
	seats  *peering.Seats
	api    rest.Interface
	client client.WithWatch
	kind   string
	found  []kind
	opened bool
	said   string

	places  map[place]func() // with what ends them
	present sync.WaitGroup

	mu         sync.Mutex
	namespaces []string
	changed    chan struct{}
}

// New makes the attendance of a member in the ClusterKopfPeering of its name; or, with Namespaces, in the KopfPeering
// of each of them. The gate is closed from then on until the operator may act.
func New(config *rest.Config, http *http.Client, member peering.Member, gate peering.Gate) (*Attendance, error) {
	a := &Attendance{
		member: member, seats: peering.NewSeats(gate), kind: clusterKind, places: map[place]func(){},
		changed: make(chan struct{}, 1), namespaces: []string{""},
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

// Namespaces restrict the operator to the peering objects of these namespaces, from now on: they may change while it
// runs. While they are nil, they are not known yet, so the operator does not act.
func (a *Attendance) Namespaces(names []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.kind, a.namespaces = namespacedKind, slices.Clone(names)
	select {
	case a.changed <- struct{}{}:
	default:
	}
}

// Run keeps the operator present until the context ends; then it removes all of its records.
func (a *Attendance) Run(ctx context.Context) {
	search := a.seats.Take()
	search.Set(true)
	defer a.leaveAll()
	for ctx.Err() == nil {
		pause := scan
		if a.look(ctx) {
			a.opened = true
			search.Set(false)
		} else if !a.opened || a.member.Mandatory {
			pause = hasty
			search.Set(true)
		}
		select {
		case <-ctx.Done():
		case <-a.changed:
		case <-time.After(pause):
		}
	}
}

// look finds the kinds, and the places in them. It is false if the operator must wait for them.
func (a *Attendance) look(ctx context.Context) bool {
	log := logf.FromContext(ctx).WithValues("peering", a.member.Name)
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	a.mu.Lock()
	name, unknown := a.kind, a.namespaces == nil
	a.mu.Unlock()
	if unknown {
		return false
	}
	found, err := find(limited, a.api, name)
	switch {
	case ctx.Err() != nil:
		return false
	case err != nil && !apierrors.IsForbidden(err):
		if a.news(err.Error()) {
			logging.Warn(log, "Cannot look for kinds of peering objects", "reason", err.Error())
		}
		return len(a.found) > 0 // what was found is followed nevertheless
	case err == nil && len(found) > 0:
		a.said, a.found = "", found
	case a.member.Mandatory && len(a.found) == 0:
		if a.news(name) {
			logging.Warn(log, "Waiting for a kind of peering objects, as peering is mandatory; install their CRDs",
				"kind", name)
		}
		return false
	case len(a.found) == 0 && a.news(name):
		log.V(1).Info("Peering kinds are not there; the operator acts without regard to others", "kind", name)
	}
	a.attend(ctx)
	return true
}

// news tells whether something is to be said that was not said last.
func (a *Attendance) news(text string) bool {
	before := a.said
	a.said = text
	return before != text
}
