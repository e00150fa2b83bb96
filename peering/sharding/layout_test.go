package sharding_test

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

// TestLayoutRenewals shows how often replicas renew the layout. It must stay valid, but renewals by each replica at
// each tick would be conflicts and load.
func TestLayoutRenewals(t *testing.T) {
	for name, replicas := range map[string][]string{"One": {"a"}, "Three": {"a", "b", "c"}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newGroup(t)
				defer g.end()
				var writes atomic.Int32
				for _, name := range replicas {
					observe := func(r memapi.Request) {
						if r.Verb == "update" && r.Name == layoutLease.Name {
							writes.Add(1)
						}
					}
					g.start(name, 6).observe.Store(&observe)
				}
				g.pass(40 * time.Second)
				writes.Store(0)
				g.pass(5 * time.Minute)
				if n := writes.Load(); n < 20 || n > 60 {
					t.Errorf("want one renewal each five to fifteen seconds, got %d in five minutes", n)
				}
			})
		})
	}
}

// TestLayoutChangesWhileLeaving shows that the last replica does not log a failure if another client changes or removes
// the layout that it is about to release. Another replica may have taken it.
func TestLayoutChangesWhileLeaving(t *testing.T) {
	edit := func(g *group, _ *replica) {
		g.server.Edit(leases, layoutLease.Namespace, layoutLease.Name, func(object map[string]any) {
			object["metadata"].(map[string]any)["annotations"].(map[string]any)["note"] = "x"
		})
	}
	for name, tc := range map[string]struct {
		reason string
		change func(g *group, a *replica)
		logs   int
	}{
		"Unchanged": {"a successful release is not logged", func(*group, *replica) {}, 0},
		"Edited":    {"an edited layout belongs to others", edit, 0},
		"Removed": {"a removed layout does not need a release", func(g *group, _ *replica) {
			g.server.Delete(leases, layoutLease.Namespace, layoutLease.Name)
		}, 0},
		"Outage": {"a failed release is logged, as the next process then waits",
			func(_ *group, a *replica) { a.mode.Store(refuses) }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newGroup(t)
				defer g.end()
				a := g.start("a", 4)
				g.pass(40 * time.Second)
				var hasLeft, isReleased atomic.Bool // replicas send requests in parallel
				observe := func(r memapi.Request) {
					if hasLeft.Load() && r.Verb == "update" && r.Name == layoutLease.Name {
						isReleased.Store(true)
						tc.change(g, a)
					}
					if r.Verb == "delete" {
						hasLeft.Store(true)
					}
				}
				a.observe.Store(&observe)
				a.stop()
				n, released := a.logs("Could not remove the Lease"), isReleased.Load()
				if n != tc.logs || !released {
					t.Errorf("%s: want %d lines, got %d; released: %t: %q", tc.reason, tc.logs, n, released, a.lines)
				}
			})
		})
	}
}
