package sharding_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
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
	"github.com/kopf-runtime/kopf-runtime/peering/sharding"
)

var leases = memapi.Resource{
	Group: "coordination.k8s.io", Version: "v1", Plural: "leases", Kind: "Lease", Namespaced: true,
}

var layoutLease = types.NamespacedName{Namespace: "default", Name: "demo"}

// The possible failures of the connection of a replica.
const (
	works = iota
	refuses
	losesAnswers
	hangs
	forbids
)

// rangeGate is the gate of one range in one replica. The group counts the open gates at each change.
type rangeGate struct {
	group   *group
	replica *replica
	index   int
	// The lock of the group guards the rest.
	closed bool
	until  time.Time
	busy   int
	idle   chan struct{}
}

func (g *rangeGate) isOpen() bool { return !g.closed && time.Now().Before(g.until) }

func (g *rangeGate) Set(closed bool) {
	g.group.mu.Lock()
	defer g.group.mu.Unlock()
	g.closed = closed
	g.group.checkRange(g)
}

func (g *rangeGate) AllowWritesUntil(until time.Time) {
	g.group.mu.Lock()
	defer g.group.mu.Unlock()
	g.until = until
	g.group.checkRange(g)
}

// writableUntil returns the end of the permission to write.
func (g *rangeGate) writableUntil() time.Time {
	g.group.mu.Lock()
	defer g.group.mu.Unlock()
	return g.until
}

func (g *rangeGate) Busy() int {
	g.group.mu.Lock()
	defer g.group.mu.Unlock()
	return g.busy
}

func (g *rangeGate) Idle() <-chan struct{} {
	g.group.mu.Lock()
	defer g.group.mu.Unlock()
	if g.idle == nil || g.busy == 0 {
		g.idle = make(chan struct{})
		if g.busy == 0 {
			close(g.idle)
		}
	}
	return g.idle
}

// work sets whether an attempt is running.
func (g *rangeGate) work(busy int) {
	g.group.mu.Lock()
	defer g.group.mu.Unlock()
	if g.busy = busy; busy == 0 && g.idle != nil {
		close(g.idle)
		g.idle = nil
	}
}

// replica is one process that shares ranges.
type replica struct {
	name      string
	sharding  *sharding.Sharding
	mode      atomic.Int32
	observe   atomic.Pointer[func(memapi.Request)] // called with each request before it takes effect
	paused    atomic.Bool                          // by its peers
	gates     []*rangeGate
	announced []int
	exit      func() // begins the end of the process, while handlers may still run
	stop      func() // ends the process
	killed    bool   // its process does not exist any more

	mu    sync.Mutex
	lines []string
}

func (r *replica) logs(text string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Count(strings.Join(r.lines, "\n"), text)
}

// before makes requests fail as the mode demands. A hanging request ignores its context, like that of a process that
// stands still.
func (r *replica) before(_ context.Context, request memapi.Request) error {
	if observe := r.observe.Load(); observe != nil {
		(*observe)(request)
	}
	for r.mode.Load() == hangs {
		time.Sleep(100 * time.Millisecond)
	}
	switch r.mode.Load() {
	case refuses:
		return errors.New("the API server does not answer")
	case forbids:
		return apierrors.NewForbidden(schema.GroupResource{Resource: "leases"}, "demo", errors.New("no rule"))
	}
	return nil
}

// after loses the answers of requests that have taken effect.
func (r *replica) after(_ context.Context, request memapi.Request) error {
	for r.mode.Load() == hangs {
		time.Sleep(100 * time.Millisecond)
	}
	if r.mode.Load() == losesAnswers && request.Verb != "list" && request.Verb != "get" {
		return errors.New("the answer is lost")
	}
	return nil
}

// group is a group of replicas on one cluster.
type group struct {
	t      *testing.T
	server *memapi.Server

	mu       sync.Mutex
	all      []*replica
	overlaps []string
	uncover  map[int]time.Duration // how long each range was without an open gate in the last call of pass
}

func newGroup(t *testing.T) *group {
	t.Helper()
	return &group{t: t, server: memapi.New()}
}

// checkRange requires that no other replica has an open gate of the range, and that the range is announced.
func (g *group) checkRange(changed *rangeGate) {
	if !changed.isOpen() || changed.replica.killed {
		return
	}
	if !slices.Contains(changed.replica.announced, changed.index) {
		g.t.Errorf("range %d of %s opens before it is announced", changed.index, changed.replica.name)
	}
	for _, r := range g.all {
		if r != changed.replica && !r.killed && changed.index < len(r.gates) && r.gates[changed.index].isOpen() &&
			len(r.gates) == len(changed.replica.gates) {
			g.overlaps = append(g.overlaps, r.name+" and "+changed.replica.name)
		}
		// With different numbers of ranges, any two overlap.
		if r != changed.replica && !r.killed && len(r.gates) != len(changed.replica.gates) && len(r.openRanges()) > 0 {
			g.overlaps = append(g.overlaps, r.name+" and "+changed.replica.name+" with other ranges")
		}
	}
}

// openRanges returns the ranges whose gates are open. The caller holds the lock of the group.
func (r *replica) openRanges() (open []int) {
	for i, gate := range r.gates {
		if gate.isOpen() {
			open = append(open, i)
		}
	}
	return open
}

// start starts a replica with a number of ranges. All replicas end with the test.
func (g *group) start(name string, count int) *replica {
	g.t.Helper()
	r := &replica{name: name}
	for i := range count {
		r.gates = append(r.gates, &rangeGate{group: g, replica: r, index: i})
	}
	connection := g.server.Connect()
	connection.Before, connection.After = r.before, r.after
	config := memapi.Config(connection)
	var transport *http.Client
	transport, err := rest.HTTPClientFor(config)
	if err != nil {
		g.t.Fatal(err)
	}
	r.sharding, err = sharding.New(config, transport, sharding.Options{
		Lease: layoutLease, Identity: name, Count: count,
		GateFor: func(index int) peering.AttemptGate { return r.gates[index] },
		SetRanges: func(indexes []int) {
			g.mu.Lock()
			defer g.mu.Unlock()
			r.announced = slices.Clone(indexes)
			for i, gate := range r.gates {
				if gate.isOpen() && !slices.Contains(indexes, i) {
					g.t.Errorf("range %d of %s is taken out while its gate is open", i, name)
				}
			}
		},
		Paused: r.paused.Load,
		Load:   func() sharding.Load { return sharding.Load{Objects: count, Backlog: 1} },
	})
	if err != nil {
		g.t.Fatal(err)
	}
	log := funcr.New(func(_, line string) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.lines = append(r.lines, line)
	}, funcr.Options{})
	ctx, cancel := context.WithCancel(logf.IntoContext(g.t.Context(), log))
	exiting := make(chan struct{})
	r.exit = sync.OnceFunc(func() { close(exiting) })
	run, done := r.sharding.Begin(ctx, exiting), make(chan struct{})
	go func() { defer close(done); run() }()
	r.stop = sync.OnceFunc(func() { cancel(); <-done })
	g.mu.Lock()
	defer g.mu.Unlock()
	g.all = append(g.all, r)
	return r
}

// kill ends a process without any further request. Its gates do not count any more.
func (g *group) kill(r *replica) {
	r.mode.Store(refuses)
	g.mu.Lock()
	r.killed = true
	g.mu.Unlock()
	r.stop()
}

// open returns how many ranges of each replica are open, such as "a6 b5".
func (g *group) open() map[string]int {
	g.mu.Lock()
	defer g.mu.Unlock()
	counts := map[string]int{}
	for _, r := range g.all {
		if n := len(r.openRanges()); n > 0 && !r.killed {
			counts[r.name] = n
		}
	}
	return counts
}

// pass lets the time pass, and measures how long each range is without an open gate.
func (g *group) pass(duration time.Duration) {
	g.uncover = map[int]time.Duration{}
	const step = 200 * time.Millisecond
	for end := time.Now().Add(duration); time.Now().Before(end); time.Sleep(step) {
		g.mu.Lock()
		covered := map[int]bool{}
		most := 0
		for _, r := range g.all {
			most = max(most, len(r.gates))
			if !r.killed {
				for _, i := range r.openRanges() {
					covered[i] = true
				}
			}
		}
		for i := range most {
			if !covered[i] {
				g.uncover[i] += step
			}
		}
		g.mu.Unlock()
	}
}

// longestGap returns how long a range was without an owner in the last call of pass.
func (g *group) longestGap() (longest time.Duration) {
	for _, gap := range g.uncover {
		longest = max(longest, gap)
	}
	return longest
}

// requireOpen requires that these numbers of ranges are open.
func (g *group) requireOpen(reason string, want ...int) {
	g.t.Helper()
	var got []int
	for _, n := range g.open() {
		got = append(got, n)
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		for _, r := range g.all {
			g.t.Log(r.name, r.sharding.DescribeStandby(), r.sharding.Status(), r.lines)
		}
		g.t.Fatalf("%s: replicas have %v open ranges, want %v", reason, got, want)
	}
}

// end stops all replicas, and requires that no range was ever open in two of them.
func (g *group) end() {
	g.t.Helper()
	for _, r := range g.all {
		for _, gate := range r.gates {
			gate.work(0)
		}
		r.mode.CompareAndSwap(hangs, refuses)
		r.stop()
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.overlaps) > 0 {
		g.t.Errorf("two gates of one range were open at once: %d times: %v", len(g.overlaps),
			slices.Compact(g.overlaps)[:1])
	}
}

// spec returns the spec of a Lease.
func (g *group) spec(name string) map[string]any {
	spec, _ := g.server.Object(leases, layoutLease.Namespace, name)["spec"].(map[string]any)
	return spec
}
