package election_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kopf-runtime/kopf-runtime/peering/election"
)

// TestReplicas shows that of replicas which start at once, one acts. A new Lease may be a removed one, so the first
// holder waits for a lease duration. A replica that stops lets another one act at once; after a crash, that takes a
// lease duration.
func TestReplicas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t)
		defer g.end()
		a, b := g.start("a"), g.start("b")
		g.pass(14 * time.Second)
		if got := g.acting(); got != "" {
			t.Errorf("%q act by a new Lease before a lease duration is over", got)
		}
		g.pass(4 * time.Second)
		first, second := a, b
		if g.holder() == "b" {
			first, second = b, a
		}
		if got := g.acting(); got != first.name {
			t.Fatalf("%q act, want the holder %q", got, first.name)
		}
		if err := second.election.CheckReady(); err != nil {
			t.Errorf("a replica on standby must be ready: %v", err)
		}
		want := first.name + " holds the Lease default/demo"
		if got := second.election.DescribeStandby(); !strings.Contains(got, want) {
			t.Errorf("the replica on standby must name the holder: %q", got)
		}
		first.stop()
		first.closed.Store(true)
		if took := g.until(second.name, time.Minute); took > 5*time.Second {
			t.Errorf("after a release, the next replica acts within a retry period: it took %s", took)
		}
		third := g.start("c")
		g.pass(5 * time.Second)
		second.mode.Store(refuses) // the process has crashed
		second.closed.Store(true)
		if took := g.until(third.name, time.Minute); took < 10*time.Second || took > 25*time.Second {
			t.Errorf("after a crash, the next replica acts after a lease duration: it took %s", took)
		}
	})
}

// TestUnfinishedAttempts shows that a holder whose attempts do not end keeps the Lease: they may still write.
func TestUnfinishedAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t)
		a := g.start("a", func(_ *replica, o *election.Options) { o.Busy = func() int { return 1 } })
		g.until("a", time.Minute)
		a.stop()
		if got := g.holder(); got != "a" {
			t.Errorf("the Lease is held by %q, want a", got)
		}
		g.end()
	})
}

// TestFrozenHolder shows that a holder whose requests stand still, like its process, does not act beyond its own
// renewals, and does not act when it wakes up.
func TestFrozenHolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t)
		defer g.end()
		a := g.start("a")
		g.until("a", time.Minute)
		g.start("b")
		g.pass(5 * time.Second)
		a.mode.Store(hangs)
		g.until("b", 30*time.Second)
		g.pass(20 * time.Second)
		a.mode.Store(works)
		g.pass(time.Minute)
		if got := g.acting(); got != "b" || a.takeovers.Load() != 1 {
			t.Errorf("%q act after %d takeovers, want b after one", got, a.takeovers.Load())
		}
	})
}

// TestTenants shows that edits of the Lease by another client never let two replicas act at once, and stop all of them
// for a limited time only.
func TestTenants(t *testing.T) {
	spec := func(fields map[string]any) func(g *group) {
		return func(g *group) {
			g.server.Edit(leases, leaseOf.Namespace, leaseOf.Name, func(object map[string]any) {
				for name, value := range fields {
					object["spec"].(map[string]any)[name] = value
				}
			})
		}
	}
	remove := func(g *group) { g.server.Delete(leases, leaseOf.Namespace, leaseOf.Name) }
	for name, tc := range map[string]struct {
		reason string
		edit   func(g *group)
	}{
		"Removed": {"a removed Lease is made again", remove},
		"Emptied": {"a Lease without a holder is not a released one", spec(map[string]any{"holderIdentity": ""})},
		"Other":   {"a holder that does not exist is replaced", spec(map[string]any{"holderIdentity": "nobody"})},
		"Handed":  {"another replica is made the holder", spec(map[string]any{"holderIdentity": "b"})},
		"Short":   {"a short duration does not count", spec(map[string]any{"leaseDurationSeconds": int64(1)})},
		"Endless": {"a long duration does not count", spec(map[string]any{"leaseDurationSeconds": int64(1e6)})},
		"Future": {"times in the future do not count",
			spec(map[string]any{"renewTime": "2100-01-01T00:00:00.000000Z"})},
		"Past": {"times in the past do not count",
			spec(map[string]any{"renewTime": "1970-01-01T00:00:00.000000Z"})},
		"Counted": {"the count of transitions does not matter", spec(map[string]any{"leaseTransitions": int64(7)})},
		"Spec":    {"an empty spec is repaired", emptySpec},
		"Occupied": {"a holder that does not exist and has a long duration is replaced",
			spec(map[string]any{"holderIdentity": "x", "leaseDurationSeconds": int64(1e6)})},
	} {
		for when, cut := range map[string]int32{"": works, "AndCut": refuses} {
			t.Run(name+when, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					g := newGroup(t)
					defer g.end()
					a := g.start("a")
					g.until("a", time.Minute)
					g.start("b")
					g.start("c")
					g.pass(5 * time.Second)
					// A holder without a connection does not notice the edit.
					a.mode.Store(cut)
					tc.edit(g)
					g.pass(2 * time.Minute)
					if got := g.acting(); len(got) != 1 {
						t.Errorf("%s: %q act", tc.reason, got)
					}
					// Edits that do not end stop all replicas at worst.
					for range 60 {
						tc.edit(g)
						g.pass(700 * time.Millisecond)
					}
				})
			})
		}
	}
}

func emptySpec(g *group) {
	g.server.Edit(leases, leaseOf.Namespace, leaseOf.Name, func(object map[string]any) {
		object["spec"] = map[string]any{}
	})
}

// TestHandedBack shows that a former holder notices that another replica has acted, although another client has made it
// the holder again in the meantime.
func TestHandedBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t)
		defer g.end()
		name := func(holder string) {
			g.server.Edit(leases, leaseOf.Namespace, leaseOf.Name, func(object map[string]any) {
				object["spec"].(map[string]any)["holderIdentity"] = holder
			})
		}
		a := g.start("a")
		g.until("a", time.Minute)
		b := g.start("b")
		g.pass(5 * time.Second)
		a.mode.Store(refuses)
		name("b")
		g.until("b", time.Minute)
		b.mode.Store(refuses)
		name("a")
		g.pass(20 * time.Second)
		a.mode.Store(works)
		g.until("a", time.Minute)
		if n := a.takeovers.Load(); n != 1 {
			t.Errorf("the former holder must drop its results once, got %d", n)
		}
	})
}

// TestOutages shows that without the API server, the holder stops acting at the end of its renewals. If no other
// process had the Lease, it continues where it was; otherwise, it has lost its term.
func TestOutages(t *testing.T) {
	for name, between := range map[string]bool{"Nobody": false, "Somebody": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newGroup(t)
				defer g.end()
				a := g.start("a")
				g.until("a", time.Minute)
				b := g.start("b")
				g.pass(5 * time.Second)
				a.mode.Store(refuses)
				if !between {
					b.mode.Store(refuses)
				}
				g.pass(14 * time.Second)
				if a.acts() {
					t.Error("the holder acts beyond seven eighths of its last lease")
				}
				c := g.start("c", func(r *replica, _ *election.Options) { r.mode.Store(refuses) })
				g.pass(time.Minute)
				if got := a.election.DescribeStandby(); !strings.Contains(got, "cannot be renewed") {
					t.Errorf("the holder must explain the outage: %q", got)
				}
				if err := a.election.CheckReady(); err != nil {
					t.Errorf("an outage must not make a replica unready that was ready: %v", err)
				}
				if err := c.election.CheckReady(); err == nil || !strings.Contains(err.Error(), "does not answer") {
					t.Errorf("a replica that starts in the outage must not be ready, and must say why: %v", err)
				}
				a.mode.Store(works)
				if between {
					g.until("b", time.Second)
					g.pass(5 * time.Second)
					b.stop()
					b.closed.Store(true)
				}
				g.until("a", 20*time.Second)
				want := map[bool]int32{true: 1}[between]
				if got := a.takeovers.Load(); got != want {
					t.Errorf("%d takeovers, want %d", got, want)
				}
				if n := a.logs("Cannot read or renew the Lease"); n != 1 {
					t.Errorf("the outage is logged %d times, want once", n)
				}
			})
		})
	}
}

// TestWithoutRight shows what happens without a right on Leases: an optional election lets all replicas act, with one
// warning, until it gets the right; otherwise nothing acts, and the process is not ready.
func TestWithoutRight(t *testing.T) {
	for name, optional := range map[string]bool{"Optional": true, "Required": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newGroup(t)
				a := g.start("a", func(r *replica, o *election.Options) {
					o.Optional = optional
					r.mode.Store(forbids)
				})
				time.Sleep(10 * time.Minute)
				if a.acts() != optional || (a.election.CheckReady() == nil) != optional {
					t.Errorf("acts: %t, ready: %v", a.acts(), a.election.CheckReady())
				}
				if n := a.logs("No right on"); n != 1 {
					t.Errorf("%d lines about the right, want one: %q", n, a.lines)
				}
				a.mode.Store(works)
				g.start("b")
				time.Sleep(2 * time.Minute)
				if got := g.acting(); len(got) != 1 || a.election.CheckReady() != nil {
					t.Errorf("with the right, %q act, want one; ready: %v", got, a.election.CheckReady())
				}
				// A right that is taken away later does not let anyone act without the Lease.
				for _, r := range g.all {
					r.mode.Store(forbids)
				}
				time.Sleep(2 * time.Minute)
				if got := g.acting(); got != "" || a.election.CheckReady() == nil {
					t.Errorf("without the right that it had, %q act; ready: %v", got, a.election.CheckReady())
				}
				g.end()
			})
		})
	}
}

// TestWithoutRightToWrite shows that an optional election without the right to write lets the operator act if there is
// no Lease. If there is one, another process may hold it: the operator does not act, and is not ready.
func TestWithoutRightToWrite(t *testing.T) {
	for name, exists := range map[string]bool{"NoLease": false, "Lease": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newGroup(t)
				if exists {
					g.server.Put(leases, map[string]any{
						"metadata": map[string]any{"namespace": leaseOf.Namespace, "name": leaseOf.Name},
						"spec":     map[string]any{},
					})
				}
				a := g.start("a", func(r *replica, o *election.Options) {
					o.Optional = true
					r.mode.Store(forbidsWrites)
				})
				time.Sleep(time.Minute)
				if a.acts() == exists || (a.election.CheckReady() == nil) == exists {
					t.Errorf("acts: %t, ready: %v", a.acts(), a.election.CheckReady())
				}
				g.end()
			})
		})
	}
}

// withPeers makes a replica follow the peers of its group.
func withPeers(r *replica, o *election.Options) {
	o.PeersDecide = func() (decide, known bool) { return r.decide.Load(), true }
	o.PeersPause = r.pause.Load
}

// TestPeers shows that no Lease is written while a peering object decides. If one appears later, the Lease is released
// when all replicas have had the time to find it; a replica that its peers pause releases it at once. When the object
// disappears, one replica acts.
func TestPeers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t)
		a := g.start("a", withPeers, func(r *replica, _ *election.Options) { r.decide.Store(true) })
		g.until("a", time.Second)
		time.Sleep(time.Minute)
		if g.server.Object(leases, leaseOf.Namespace, leaseOf.Name) != nil {
			t.Error("a replica with peers must not write a Lease")
		}
		a.decide.Store(false)
		g.until("", 2*time.Second)
		g.until("a", time.Minute)
		b := g.start("b", withPeers)
		g.pass(10 * time.Second)
		// From here on, the peers decide again: b has a smaller rank.
		a.decide.Store(true)
		b.decide.Store(true)
		time.Sleep(100 * time.Second)
		if got := g.acting(); got != "a" {
			t.Errorf("%q act, want only the holder until others have found the object", got)
		}
		g.until("ab", time.Minute) // the gates of their peers are not part of this test
		time.Sleep(5 * time.Second)
		if got := g.holder(); got != "" {
			t.Errorf("the Lease is held by %q", got)
		}
		a.decide.Store(false)
		b.decide.Store(false)
		g.until("", 2*time.Second)
		g.overlap.Store(0)
		g.pass(30 * time.Second)
		if got := g.acting(); len(got) != 1 {
			t.Errorf("%q act, want one", got)
		}
		if n := g.overlap.Load(); n > 0 {
			t.Errorf("two replicas acted at once without peers, %d times", n)
		}
		first, second := g.all[0], g.all[1]
		if g.holder() == "b" {
			first, second = second, first
		}
		first.decide.Store(true)
		second.decide.Store(true)
		first.pause.Store(true)
		if took := g.until("ab", time.Minute); took > 20*time.Second {
			t.Errorf("a paused holder must hand over within a lease duration: it took %s", took)
		}
		g.overlap.Store(0)
		g.stale = 0
		g.end()
	})
}

func TestLeaseName(t *testing.T) {
	all := election.LeaseName("demo.example.org", nil, nil)
	for name, tc := range map[string]struct {
		reason   string
		operator string
		served   []string
		same     bool
	}{
		"Order":   {"the order of namespaces does not matter", "demo.example.org", []string{"*"}, true},
		"One":     {"another namespace has another Lease", "demo.example.org", []string{"a"}, false},
		"Another": {"another operator has another Lease", "other.example.org", nil, false},
	} {
		got := election.LeaseName(tc.operator, tc.served, nil)
		if (got == all) != tc.same {
			t.Errorf("%s: %s: LeaseName(): %q, beside %q", name, tc.reason, got, all)
		}
	}
	if got := election.LeaseName("Demo_1.example.org", []string{"b", "a"}, nil); got !=
		election.LeaseName("demo-1.example.org", []string{"a", "b"}, nil) {
		t.Errorf("LeaseName(): %q must be a name of an object", got)
	}
	if want := "demo.example.org-684888c0"; all != want {
		t.Errorf("LeaseName(): %q, want %q: a changed name would let two versions act at once", all, want)
	}
}
