package sharding_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

const count = 16

// TestReplicas shows that replicas share all ranges, that one that ends hands over at once, and that the ranges of a
// killed one are taken over within a lease duration and five seconds.
func TestReplicas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t)
		defer g.end()
		a, b := g.start("a", count), g.start("b", count)
		g.pass(14 * time.Second)
		g.requireOpen("a new layout may be a removed one: the first holders wait for a lease duration")
		g.pass(10 * time.Second)
		g.requireOpen("all ranges wait at the same time", 8, 8)
		c := g.start("c", count)
		g.pass(10 * time.Second)
		g.requireOpen("a third replica gets the ranges above the limit of the others", 4, 6, 6)
		if gap := g.longestGap(); gap > 5*time.Second {
			t.Errorf("a range was without an owner for %s while it moved, want a few seconds", gap)
		}
		c.stop()
		g.pass(10 * time.Second)
		g.requireOpen("a replica that ends leaves its ranges to the others", 8, 8)
		if gap := g.longestGap(); gap > 5*time.Second {
			t.Errorf("a range was without an owner for %s after a graceful end", gap)
		}
		g.kill(a)
		g.pass(30 * time.Second)
		g.requireOpen("the other replica takes the ranges of a killed one", 16)
		if gap := g.longestGap(); gap < 8*time.Second || gap > 20*time.Second {
			t.Errorf("after a kill, a range was without an owner for %s, want between 8s and 20s", gap)
		}
		b.stop()
		if got := g.spec("demo"); got["holderIdentity"] != "" || got["leaseDurationSeconds"] != int64(1) {
			t.Errorf("the last replica must mark the layout as released: %v", got)
		}
		g.start("d", count)
		g.pass(3 * time.Second)
		g.requireOpen("after a graceful end, the next replica does not wait", 16)
	})
}

// TestExit shows that a process that exits leaves its idle ranges at once, and keeps its Lease for a range with a
// running handler until that has returned.
func TestExit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t)
		defer g.end()
		a := g.start("a", 4)
		g.pass(30 * time.Second)
		b := g.start("b", 4)
		g.pass(10 * time.Second)
		g.requireOpen("each replica has its share", 2, 2)
		busy := a.gates[a.sharding.Status().Open[0]]
		busy.work(1)
		a.exit()
		g.pass(time.Minute)
		g.requireOpen("the other replica gets the idle range, and not the busy one, whose handler may still write", 3)
		if until := time.Until(busy.writableUntil()); until < time.Second {
			t.Errorf("the permission to write of the running handler ends in %s, want it to be extended", until)
		}
		busy.work(0)
		g.pass(5 * time.Second)
		g.requireOpen("the last range follows when its handler has returned", 4)
		a.stop()
		if got := len(b.sharding.Status().Replicas); got != 1 {
			t.Errorf("%d replicas are shown, want only the one that is left", got)
		}
	})
}

// TestLateReplica shows that the ranges of a killed replica do not wait for a replica that has started after the kill,
// and has not observed the Leases for long enough: the other one, which holds its share already, releases them for it.
func TestLateReplica(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t)
		defer g.end()
		a := g.start("a", 4)
		g.start("b", 4)
		g.pass(40 * time.Second)
		g.requireOpen("each replica has its share", 2, 2)
		g.kill(a)
		began := time.Now()
		g.pass(6 * time.Second)
		g.start("c", 4)
		g.pass(time.Until(began.Add(20 * time.Second)))
		g.requireOpen("the new replica gets the ranges within a lease duration and five seconds", 2, 2)
	})
}

// TestSuspension shows that a replica whose process or connection stands still does not act beyond its permission to
// write, loses its ranges, and does not act in them when it continues.
func TestSuspension(t *testing.T) {
	for name, mode := range map[string]int32{"Hangs": hangs, "Refuses": refuses, "LosesAnswers": losesAnswers} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newGroup(t)
				defer g.end()
				a := g.start("a", count)
				g.start("b", count)
				g.pass(30 * time.Second)
				a.mode.Store(mode)
				g.pass(40 * time.Second)
				want := []int{16}
				if mode == losesAnswers {
					want = []int{8} // its writes take effect, so it is alive for the others
				}
				g.requireOpen("the ranges of a silent replica go to the other one", want...)
				a.mode.Store(works)
				g.pass(10 * time.Second)
				g.requireOpen("it gets its share again", 8, 8)
			})
		})
	}
}

// TestOutage shows that in an outage of the API server, the gates close and the ranges stay announced. After it, each
// replica continues with the ranges that it had.
func TestOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t)
		defer g.end()
		a, b := g.start("a", count), g.start("b", count)
		g.pass(30 * time.Second)
		before := a.sharding.Status()
		a.mode.Store(refuses)
		b.mode.Store(refuses)
		g.pass(14 * time.Second)
		g.requireOpen("without the API server, no replica acts")
		g.pass(5 * time.Minute)
		if got := a.announced; len(got) != 8 {
			t.Errorf("the ranges %v are announced in the outage, want the 8 of before", got)
		}
		if a.sharding.CheckReady() != nil {
			t.Error("an outage must not make a replica unready that was ready")
		}
		c := g.start("c", count)
		c.mode.Store(refuses)
		g.pass(time.Second)
		if err := c.sharding.CheckReady(); err == nil || !strings.Contains(err.Error(), "does not answer") {
			t.Errorf("a replica that starts in an outage must not be ready, and must say why: %v", err)
		}
		c.stop()
		a.mode.Store(works)
		g.pass(5 * time.Second)
		g.requireOpen("the first replica that can work again has its own ranges, and leaves the others theirs", 8)
		b.mode.Store(works)
		g.pass(3 * time.Second)
		g.requireOpen("the second replica continues, too", 8, 8)
		if after := a.sharding.Status(); after.Moves != before.Moves {
			t.Errorf("nothing must move: %v before, %v after", before.Moves, after.Moves)
		}
	})
}
