package election_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kopf-runtime/kopf-runtime/test/storms"
)

// TestStorm shows that random crashes, ends, outages, frozen requests and edits of the Lease never let two replicas act
// at once, and that one acts when they are over. The seed is the name of the case; SEED repeats it.
func TestStorm(t *testing.T) {
	for range storms.Count(t, 6, 40) {
		seed := storms.Seed(t)
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g, dice := newGroup(t), rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // no secret
				for name := range 3 {
					g.start(string(rune('a' + name)))
				}
				for step := range 60 {
					g.disturb(dice, string(rune('!'+step)))
					g.pass(time.Duration(dice.IntN(8000)) * time.Millisecond)
				}
				for _, r := range g.all {
					r.mode.Store(works)
				}
				g.pass(2 * time.Minute)
				count := 0
				for _, r := range g.all {
					if r.acts() {
						count++
					}
				}
				if count != 1 {
					t.Errorf("%d replicas act, want one", count)
				}
				g.end()
			})
		})
	}
}

// disturb changes one replica, or the Lease.
func (g *group) disturb(dice *rand.Rand, next string) {
	r := g.all[dice.IntN(len(g.all))]
	switch dice.IntN(7) {
	case 0: // it ends, and another one starts
		if r.mode.CompareAndSwap(hangs, refuses); true {
			g.replace(r, next)
		}
	case 1: // it crashes
		r.mode.Store(refuses)
		g.replace(r, next)
	case 2, 3:
		r.mode.Store(int32(dice.IntN(hangs + 1))) //nolint:gosec // a small number
	case 4:
		r.mode.Store(works)
	case 5:
		g.server.Delete(leases, leaseOf.Namespace, leaseOf.Name)
	case 6:
		holder := []any{"", "nobody", r.name}[dice.IntN(3)]
		g.server.Edit(leases, leaseOf.Namespace, leaseOf.Name, func(object map[string]any) {
			object["spec"].(map[string]any)["holderIdentity"] = holder
			object["spec"].(map[string]any)["leaseDurationSeconds"] = []any{int64(2), int64(1e6)}[dice.IntN(2)]
		})
	}
}

// replace ends a replica, and starts another one. Names have one byte, see [group.acting].
func (g *group) replace(r *replica, next string) {
	g.t.Helper()
	r.stop()
	r.closed.Store(true)
	for i, one := range g.all {
		if one == r {
			g.all = append(g.all[:i], g.all[i+1:]...)
			break
		}
	}
	g.start(next)
}
