package peering_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
	"github.com/kopf-runtime/kopf-runtime/peering"
	"github.com/kopf-runtime/kopf-runtime/test/vectors"
)

// TestHandOver shows that an operator of a higher priority takes over as soon as the one of a lower priority is idle,
// and gives back when it leaves: D-peering-rest.
func TestHandOver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newSimulation(t)
		defer w.stopAll()
		low := w.startOperator("low", 1, 0)
		low.setAttemptDuration(30 * time.Second)
		time.Sleep(5 * time.Second)
		w.requireOpen("an operator alone acts", "low")
		high := w.startOperator("high", 2, 0)
		time.Sleep(20 * time.Second)
		w.requireOpen("no operator begins while an attempt is running")
		time.Sleep(20 * time.Second)
		w.requireOpen("the higher priority acts after the attempt", "high")
		high.stopGracefully()
		time.Sleep(time.Second)
		w.requireOpen("the lower priority acts after the record is removed", "low")
	})
}

// TestEquals shows that of two operators with the same priority, the one with the smaller identity acts, whichever
// starts first: D-peering-elects.
func TestEquals(t *testing.T) {
	t.Parallel()
	for name, order := range map[string][]string{"smaller first": {"a", "b"}, "smaller last": {"b", "a"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newSimulation(t)
				defer w.stopAll()
				for _, identity := range order {
					w.startOperator(identity, 7, 0)
					time.Sleep(10 * time.Second)
				}
				w.requireOpen("the smaller identity acts", "a")
			})
		})
	}
}

// TestLostOperators shows that the next operator takes over from one that dies or is cut off within its lifetime,
// even if their clocks differ. An operator that is cut off stops before that: D-peering-clock, D-peering-fence.
func TestLostOperators(t *testing.T) {
	t.Parallel()
	for _, clock := range []time.Duration{-100 * time.Second, 0, time.Minute} {
		for _, dies := range []bool{true, false} {
			t.Run(fmt.Sprint(clock, dies), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					w := newSimulation(t)
					defer w.stopAll()
					high, _ := w.startOperator("high", 2, clock), w.startOperator("low", 1, 0)
					time.Sleep(3*time.Minute + 7*time.Second)
					w.requireOpen("the higher priority acts with any clock", "high")
					if high.setDisconnected(true); dies {
						high.kill()
					}
					time.Sleep(peering.DefaultLifetime + 10*time.Second)
					w.requireOpen("the next operator acts after one is lost", "low")
					if high.setDisconnected(false); !dies {
						time.Sleep(15 * time.Second) // a request without an answer takes 10
						w.requireOpen("the higher priority acts when it is back", "high")
					}
				})
			})
		}
	}
}

// TestTurbulence shows that five operators under random failures never act at the same time, and that one of them
// acts before long.
func TestTurbulence(t *testing.T) {
	t.Parallel()
	for seed := range uint64(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w, random := newSimulation(t), rand.New(rand.NewPCG(seed, 1))
				defer w.stopAll()
				for i, priority := range []int{3, 1, 2, 3, random.IntN(5)} {
					w.startOperator(fmt.Sprintf("%c-%d", 'e'-rune(i), priority), priority,
						time.Duration(random.IntN(121)-60)*time.Second)
				}
				for range 20 {
					time.Sleep(time.Duration(random.IntN(60000)) * time.Millisecond)
					w.disturbRandomOperator(random)
				}
			})
		})
	}
}

// disturbRandomOperator kills, replaces or cuts off an operator at random. It always leaves one operator alone.
func (w *operatorSimulation) disturbRandomOperator(random *rand.Rand) {
	w.mu.Lock()
	alive := slices.DeleteFunc(slices.Clone(w.operators), func(r *simulatedOperator) bool { return r.dead })
	quiet := time.Since(w.lastActed)
	w.mu.Unlock()
	if most := 2*peering.DefaultLifetime + 20*time.Second; quiet > most {
		w.t.Errorf("%s: no operator has acted for %s\n%s", w.elapsedText(), quiet, strings.Join(w.log, "\n"))
	}
	one := alive[1+random.IntN(len(alive)-1)]
	switch clock := one.clockSkew; random.IntN(3) {
	case 0:
		one.kill()
		w.startOperator(one.name()+"'", one.member.Self.Priority, clock)
	case 1:
		one.setDisconnected(true)
		time.AfterFunc(time.Duration(random.IntN(150))*time.Second, func() { one.setDisconnected(false) })
	default:
		if one.name() != "" && len(alive) > 3 {
			go func() {
				one.stopGracefully()
				w.mu.Lock()
				one.dead = true
				w.mu.Unlock()
			}()
		}
	}
}

// TestTakeOverWait shows that a new operator waits for peers of Kopf, which cannot report that they are idle:
// D-peering-wait.
func TestTakeOverWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newSimulation(t)
		defer w.stopAll()
		w.fixture.server.Edit(w.fixture.resource, "", "default", func(object map[string]any) {
			object["status"] = map[string]any{"python": map[string]any{
				"priority": int64(1), "lifetime": int64(3600), "lastseen": time.Now().UTC().Format(time.RFC3339),
			}}
		})
		w.startOperator("high", 2, 0)
		time.Sleep(4 * time.Second)
		w.requireOpen("no operator acts while a peer of Kopf may act")
		time.Sleep(2 * time.Second)
		w.requireOpen("the new operator acts after the wait", "high")
	})
}

// TestBeats shows that a record is renewed after a third of its lifetime, and every second until it is confirmed:
// D-peering-beat. By Kopf's rules, it is renewed 5 to 10 seconds before its end.
func TestBeats(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		jitter      func() time.Duration
		least, most int // in 10 minutes
	}{"ours": {nil, 30, 32}, "Kopf's": {peering.KopfJitter, 11, 14}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := newMemberFixture(t, vectors.Fields{}, peering.Member{
					Self: peering.Self{Identity: "me"}, Jitter: c.jitter,
				})
				var refused atomic.Bool
				b.connection.Before = func(context.Context, memapi.Request) error {
					if refused.Load() {
						return memapi.NewRefusal(500)
					}
					return nil
				}
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan struct{})
				go func() { defer close(done); b.member.Run(ctx) }()
				time.Sleep(10 * time.Minute)
				synctest.Wait()
				if n := len(b.connection.DrainRequests()); n < c.least || n > c.most {
					t.Errorf("%d records in 10 minutes, want %d to %d", n, c.least, c.most)
				}
				refused.Store(true)
				time.Sleep(2 * time.Minute)
				synctest.Wait()
				if n := len(b.connection.DrainRequests()); n < 60 || n > 121 {
					t.Errorf("%d attempts within two minutes of refusals", n)
				}
				cancel()
				<-done
			})
		})
	}
}
