package election_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
	"github.com/kopf-runtime/kopf-runtime/peering"
	"github.com/kopf-runtime/kopf-runtime/peering/election"
)

var leases = memapi.Resource{
	Group: "coordination.k8s.io", Version: "v1", Plural: "leases", Kind: "Lease", Namespaced: true,
}

var leaseOf = types.NamespacedName{Namespace: "default", Name: "demo"}

// The possible failures of the connection of a replica.
const (
	works = iota
	refuses
	forbids
	forbidsWrites
	hangs
)

// replica is one process in an election. It is the gate of its operator.
type replica struct {
	t    *testing.T
	name string

	mode          atomic.Int32 // of the connection
	decide, pause atomic.Bool  // by the peers
	closed        atomic.Bool
	until         atomic.Pointer[time.Time]
	takeovers     atomic.Int32
	known         int32 // takeovers when it acted last; -1 before

	election *election.Election
	stop     func()

	mu    sync.Mutex
	lines []string
}

func (r *replica) Set(closed bool)               { r.closed.Store(closed) }
func (r *replica) AllowWritesUntil(at time.Time) { r.until.Store(&at) }

// acts reports whether the operator may start handlers and write.
func (r *replica) acts() bool {
	until := r.until.Load()
	return !r.closed.Load() && (until == nil || until.IsZero() || time.Now().Before(*until))
}

func (r *replica) logs(text string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Count(strings.Join(r.lines, "\n"), text)
}

// before makes the requests fail as the mode demands. A hanging request ignores its context, like the requests of a
// process that stands still.
func (r *replica) before(_ context.Context, request memapi.Request) error {
	for r.mode.Load() == hangs {
		time.Sleep(100 * time.Millisecond)
	}
	switch mode := r.mode.Load(); {
	case mode == refuses:
		return errors.New("the API server does not answer")
	case mode == forbids, mode == forbidsWrites && request.Verb != "get":
		return apierrors.NewForbidden(schema.GroupResource{Resource: "leases"}, "demo", errors.New("no rule"))
	}
	return nil
}

// group is a group of replicas on one cluster.
type group struct {
	t       *testing.T
	server  *memapi.Server
	mu      sync.Mutex
	all     []*replica
	overlap atomic.Int32 // how often two replicas acted at once
	last    *replica     // that acted
	stale   int          // how often a replica continued although another one had acted
}

func newGroup(t *testing.T) *group {
	t.Helper()
	return &group{t: t, server: memapi.New()}
}

// start starts a replica. All replicas end with the test.
func (g *group) start(name string, changes ...func(*replica, *election.Options)) *replica {
	g.t.Helper()
	r := &replica{t: g.t, name: name, known: -1}
	connection := g.server.Connect()
	connection.Before = r.before
	o := election.Options{
		Lease: leaseOf, Identity: name, Gate: peering.ClosedByAny(r), Busy: func() int { return 0 },
		OnTakeover: func() { r.takeovers.Add(1) },
	}
	for _, change := range changes {
		change(r, &o)
	}
	config := memapi.Config(connection)
	var transport *http.Client
	transport, err := rest.HTTPClientFor(config)
	if err == nil {
		r.election, err = election.New(config, transport, o)
	}
	if err != nil {
		g.t.Fatal(err)
	}
	log := funcr.New(func(_, line string) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.lines = append(r.lines, line)
	}, funcr.Options{})
	ctx, cancel := context.WithCancel(logf.IntoContext(g.t.Context(), log))
	run, done := r.election.Begin(ctx), make(chan struct{})
	go func() { defer close(done); run() }()
	r.stop = sync.OnceFunc(func() { cancel(); <-done })
	g.mu.Lock()
	defer g.mu.Unlock()
	g.all = append(g.all, r)
	return r
}

// acting returns the names of the replicas that act. Each name is one byte.
func (g *group) acting() (names string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, r := range g.all {
		if r.acts() {
			names += r.name
		}
	}
	return names
}

// pass lets the time pass, and counts the times when two replicas act at once.
func (g *group) pass(duration time.Duration) {
	for end := time.Now().Add(duration); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if len(g.acting()) > 1 {
			g.overlap.Add(1)
		}
		g.noteActor()
	}
}

// noteActor requires that a replica which acts after another one has dropped the results of before.
func (g *group) noteActor() {
	for _, r := range g.all {
		if !r.acts() {
			continue
		}
		if now := r.takeovers.Load(); g.last != r && r.known == now {
			g.stale++
		}
		g.last, r.known = r, r.takeovers.Load()
	}
}

// until lets the time pass until these replicas act, and returns how long that took.
func (g *group) until(names string, most time.Duration) time.Duration {
	g.t.Helper()
	began := time.Now()
	for g.acting() != names {
		if time.Since(began) > most {
			for _, r := range g.all {
				g.t.Log(r.name, r.election.DescribeStandby(), r.lines)
			}
			g.t.Fatalf("after %s, %q act, want %q", most, g.acting(), names)
		}
		g.pass(50 * time.Millisecond)
	}
	return time.Since(began)
}

// end stops all replicas, and requires that two never acted at once.
func (g *group) end() {
	g.t.Helper()
	for _, r := range g.all {
		r.mode.CompareAndSwap(hangs, refuses)
		r.stop()
		r.closed.Store(true)
	}
	if g.stale > 0 {
		g.t.Errorf("a replica kept its results although another one had acted: %d times", g.stale)
	}
	if n := g.overlap.Load(); n > 0 {
		g.t.Errorf("two replicas acted at once for %s", time.Duration(n)*50*time.Millisecond)
	}
}

// holder returns the holder of the Lease.
func (g *group) holder() string {
	spec, _ := g.server.Object(leases, leaseOf.Namespace, leaseOf.Name)["spec"].(map[string]any)
	holder, _ := spec["holderIdentity"].(string)
	return holder
}
