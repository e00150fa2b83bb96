package sharding_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
	"github.com/kopf-runtime/kopf-runtime/peering"
	"github.com/kopf-runtime/kopf-runtime/peering/election"
	"github.com/kopf-runtime/kopf-runtime/peering/sharding"
	"github.com/kopf-runtime/kopf-runtime/test/storms"
)

// TestBusyRanges shows that a surplus range is left when its attempts have ended, or after a lease duration. At the end
// of the process, a busy range is not left: its attempts may still write.
func TestBusyRanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t)
		defer g.end()
		a := g.start("a", 2)
		g.pass(20 * time.Second)
		a.gates[0].work(1)
		a.gates[1].work(1)
		g.start("b", 2)
		g.pass(10 * time.Second)
		g.requireOpen("the range of a running attempt is not given back yet", 1)
		if got := len(a.announced); got != 2 {
			t.Errorf("%d ranges are announced, want 2: the one that is left is still busy", got)
		}
		a.gates[0].work(0)
		a.gates[1].work(0)
		g.pass(3 * time.Second)
		g.requireOpen("when the attempt has ended, the range moves within a tick", 1, 1)
		a.gates[0].work(1)
		a.gates[1].work(1)
		a.stop()
		g.requireOpen("a process that ends acts in no range", 1)
		g.pass(5 * time.Second)
		g.requireOpen("busy ranges must end by themselves", 1)
		g.pass(25 * time.Second)
		g.requireOpen("then the other replica takes them", 2)
	})
}

// TestStuckAttempt shows that an attempt that does not end keeps a surplus range for a lease duration only: then its
// writes are refused, and the next replica waits for another one. Its process does not take the range back.
func TestStuckAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t)
		defer g.end()
		a := g.start("a", 2)
		g.pass(20 * time.Second)
		a.gates[0].work(1)
		a.gates[1].work(1)
		b := g.start("b", 2)
		g.pass(25 * time.Second)
		g.requireOpen("the attempt may still write, or has just been cancelled", 1)
		g.pass(15 * time.Second)
		g.requireOpen("the range moves although its attempt did not end", 1, 1)
		b.stop()
		g.pass(15 * time.Second)
		g.requireOpen("a range in which an attempt is still running is left to others", 1)
		a.gates[1].work(0)
		g.pass(5 * time.Second)
		g.requireOpen("when it has ended, the range is taken", 2)
	})
}

// TestWithoutRight shows that a replica without a right on Leases is not ready, says so once, and holds nothing.
func TestWithoutRight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t)
		defer g.end()
		a := g.start("a", 4)
		a.mode.Store(forbids)
		g.pass(time.Minute)
		g.requireOpen("without a right on Leases, no handlers are called")
		if a.sharding.CheckReady() == nil || a.logs("No right") != 1 {
			t.Errorf("ready: %v; logged %d times", a.sharding.CheckReady(), a.logs("No right"))
		}
		a.mode.Store(works)
		g.pass(30 * time.Second)
		g.requireOpen("with the right, it shares the ranges", 4)
		if err := a.sharding.CheckReady(); err != nil {
			t.Errorf("with the right, it must be ready: %v", err)
		}
		a.mode.Store(forbids)
		g.pass(30 * time.Second)
		if a.sharding.CheckReady() == nil {
			t.Error("without the right that it had, it must not be ready")
		}
		a.mode.Store(works)
	})
}

// TestNumberOfRanges shows that a replica with another number of ranges waits until all replicas with the former number
// have ended, and is ready meanwhile.
func TestNumberOfRanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t)
		defer g.end()
		a, b := g.start("a", 4), g.start("b", 4)
		g.pass(30 * time.Second)
		c := g.start("c", 8)
		d := g.start("d", 8)
		g.pass(time.Minute)
		g.requireOpen("replicas with another number of ranges wait", 2, 2)
		got := c.sharding.DescribeStandby()
		if !strings.Contains(got, "with 4 have") || c.sharding.CheckReady() != nil {
			t.Errorf("the waiting replica must be ready and name the present number: %q", got)
		}
		if unowned := c.sharding.Status().Unowned; len(unowned) > 0 {
			t.Errorf("a waiting replica does not know which ranges have no owner, got %v", unowned)
		}
		a.stop()
		g.pass(30 * time.Second)
		g.requireOpen("they wait for the last one", 4)
		b.stop()
		g.pass(6 * time.Second)
		g.requireOpen("when it has ended, they act at once", 4, 4)
		for _, one := range g.server.ObjectsOf(leases) {
			if name := one["metadata"].(map[string]any)["name"].(string); strings.Contains(name, "-range-4-") {
				t.Errorf("the Lease %s of the former number must be removed", name)
			}
		}
		g.kill(c)
		g.kill(d)
		g.start("e", 2)
		g.pass(time.Minute)
		g.requireOpen("after a crash of all, it waits for their Leases", 2)
	})
}

// TestPausedReplicas shows that the replicas that the peers do not pause share all ranges. If all of them are paused,
// they keep their ranges.
func TestPausedReplicas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t)
		defer g.end()
		a, b, c := g.start("a", 4), g.start("b", 4), g.start("c", 4)
		g.pass(time.Minute)
		moves := func() (all []sharding.Moves) {
			for _, r := range g.all {
				all = append(all, r.sharding.Status().Moves)
			}
			return all
		}
		before := moves()
		for _, paused := range []bool{true, false} {
			for _, r := range g.all {
				r.paused.Store(paused)
				g.pass(2 * time.Second) // replicas do not notice it at the same time
			}
			g.pass(time.Minute)
		}
		if after := moves(); !slices.Equal(before, after) {
			t.Errorf("ranges have moved in a pause of all replicas: %v, before %v", after, before)
		}
		a.paused.Store(true)
		b.paused.Store(true)
		g.pass(30 * time.Second)
		if got := g.open(); len(got) != 1 || got["c"] != 4 {
			t.Errorf("the only replica without a pause must hold all ranges, got %v", got)
		}
		c.paused.Store(true)
		g.pass(30 * time.Second)
		if got := g.open(); got["a"]+got["b"]+got["c"] != 4 || got["c"] != 2 {
			t.Errorf("replicas that are all paused share the ranges, got %v", got)
		}
	})
}

// electionGate is the gate of an elected replica. It counts as one with other ranges.
type electionGate struct{ *rangeGate }

// TestElection shows that elected and sharded replicas of one operator never act at once, and that each takes over from
// the other.
func TestElection(t *testing.T) {
	for name, isKilled := range map[string]bool{"Ends": false, "Killed": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newGroup(t)
				defer g.end()
				first := g.elect("elected")
				g.pass(20 * time.Second)
				g.requireOpen("the elected replica acts", 1)
				a := g.start("a", 4)
				g.pass(time.Minute)
				g.requireOpen("the sharded replica waits for it", 1)
				g.leave(first, isKilled)
				g.pass(40 * time.Second)
				g.requireOpen("then it acts", 4)
				g.elect("second")
				g.pass(time.Minute)
				g.requireOpen("the elected replica waits for the sharded one", 4)
				g.leave(a, isKilled)
				g.pass(time.Minute)
				g.requireOpen("then it acts", 1)
			})
		})
	}
}

// leave ends or kills a replica.
func (g *group) leave(r *replica, isKilled bool) {
	if isKilled {
		g.kill(r)
		return
	}
	r.stop()
}

// elect starts a replica that is elected instead of sharded.
func (g *group) elect(name string) *replica {
	g.t.Helper()
	r := &replica{name: name, announced: []int{0}}
	r.gates = []*rangeGate{{group: g, replica: r, closed: true}}
	connection := g.server.Connect()
	connection.Before = r.before
	config := memapi.Config(connection)
	var transport *http.Client
	var e *election.Election
	transport, err := rest.HTTPClientFor(config)
	if err == nil {
		e, err = election.New(config, transport, election.Options{
			Lease: layoutLease, Identity: name, Gate: peering.ClosedByAny(electionGate{r.gates[0]}),
			Busy: func() int { return 0 }, OnTakeover: func() {},
		})
	}
	if err != nil {
		g.t.Fatal(err)
	}
	// The status in failures is that of a sharded replica which was never started.
	r.sharding = &sharding.Sharding{}
	ctx, cancel := context.WithCancel(g.t.Context())
	run, done := e.Begin(ctx), make(chan struct{})
	go func() { defer close(done); run() }()
	r.stop = func() {
		cancel()
		<-done
		r.gates[0].Set(true)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.all = append(g.all, r)
	return r
}

// TestReadStatus shows the state that a tool reads by one list.
func TestReadStatus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t)
		defer g.end()
		replicas := []*replica{g.start("a", 3), g.start("b", 3)}
		g.pass(40 * time.Second)
		config := memapi.Config(g.server.Connect())
		client, err := coordinationv1client.NewForConfig(config)
		if err != nil {
			t.Fatal(err)
		}
		all, err := sharding.ReadStatus(t.Context(), client, layoutLease)
		if err != nil {
			t.Fatal(err)
		}
		status := all[layoutLease.Namespace]
		if status.Count != 3 || len(status.Replicas) != 2 || status.Replicas[0].Identity != "a" ||
			len(status.Replicas[0].Ranges)+len(status.Replicas[1].Ranges) != 3 || len(status.Unowned) != 0 ||
			status.Replicas[1].Load != (sharding.Load{Objects: 3, Backlog: 1}) {
			t.Errorf("got %+v, want two replicas with three ranges", status)
		}
		for _, number := range []string{"-1", "0", "999999999999", "x"} {
			g.server.Edit(leases, layoutLease.Namespace, layoutLease.Name, func(object map[string]any) {
				object["spec"].(map[string]any)["holderIdentity"] = "shards-" + number
				annotations := object["metadata"].(map[string]any)["annotations"].(map[string]any)
				annotations["sharding.kopf.dev/shards"] = number
			})
			all, err := sharding.ReadStatus(t.Context(), client, layoutLease)
			if status := all[layoutLease.Namespace]; err != nil || status.Count != 0 || len(status.Replicas) != 2 {
				t.Errorf("an edited number of %s ranges does not count: %+v, %v", number, status, err)
			}
		}
		g.pass(time.Minute)
		for _, one := range replicas {
			g.kill(one)
		}
		time.Sleep(3 * time.Minute)
		all, err = sharding.ReadStatus(t.Context(), client, layoutLease)
		if status := all[layoutLease.Namespace]; err != nil || len(status.Replicas) != 2 ||
			!status.Replicas[0].Silent || !status.Replicas[1].Silent || len(status.Unowned) != 3 {
			t.Errorf("killed replicas are silent, and their ranges have no owner: %+v, %v", status, err)
		}
	})
}

// TestStorm shows that random ends, crashes, outages, standstills and edits never open two gates of a range, and that
// all ranges are served when they are over. The seed is the name of the case; SEED repeats it.
func TestStorm(t *testing.T) {
	for range storms.Count(t, 3, 40) {
		seed := storms.Seed(t)
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g, dice := newGroup(t), rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // no secret
				for name := range 3 {
					g.start(string(rune('a'+name)), 5)
				}
				for step := range 80 {
					g.disturb(dice, fmt.Sprint("r", step))
					g.pass(time.Duration(dice.IntN(8000)) * time.Millisecond)
				}
				for _, r := range g.all {
					if !r.killed {
						r.mode.Store(works)
					}
				}
				g.pass(3 * time.Minute)
				total := 0
				for _, n := range g.open() {
					total += n
				}
				if total != 5 {
					g.requireOpen("all ranges must be served", 1, 2, 2)
				}
				g.end()
			})
		})
	}
}

// disturb changes one replica, or a Lease.
func (g *group) disturb(dice *rand.Rand, next string) {
	var alive []*replica
	for _, r := range g.all {
		if !r.killed {
			alive = append(alive, r)
		}
	}
	r := alive[dice.IntN(len(alive))]
	all := g.server.ObjectsOf(leases)
	switch dice.IntN(8) {
	case 0: // it ends, and another one starts
		r.mode.CompareAndSwap(hangs, refuses)
		r.stop()
		g.kill(r)
		g.start(next, 5)
	case 1: // it crashes
		g.kill(r)
		g.start(next, 5)
	case 2, 3:
		r.mode.Store(int32(dice.IntN(hangs + 1))) //nolint:gosec // a small number
	case 4, 5:
		r.mode.Store(works)
	case 6:
		if len(all) > 0 {
			name := all[dice.IntN(len(all))]["metadata"].(map[string]any)["name"].(string)
			g.server.Delete(leases, layoutLease.Namespace, name)
		}
	case 7:
		if len(all) > 0 {
			name := all[dice.IntN(len(all))]["metadata"].(map[string]any)["name"].(string)
			holder := []any{"", "nobody", r.name, "shards-4"}[dice.IntN(4)]
			g.server.Edit(leases, layoutLease.Namespace, name, func(object map[string]any) {
				object["spec"].(map[string]any)["holderIdentity"] = holder
				object["spec"].(map[string]any)["leaseDurationSeconds"] = []any{int64(2), int64(1e6)}[dice.IntN(2)]
			})
		}
	}
}
