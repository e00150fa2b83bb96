package source_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/source"
)

// TestPlacesAreKept shows that deletions and all other requests each have reserved slots, and that ticks need none.
func TestPlacesAreKept(t *testing.T) {
	for size, each := range map[int]int{1: 1, 2: 1, 3: 2, 9: 8, 10: 9, 20: 18, 100: 90} {
		for _, first := range []int{source.PriorityDeletion, source.PriorityChange} {
			t.Run(fmt.Sprint(size, " ", first), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					c := newClient(source.NewPlaces(size, source.PlacesObserver{}))
					defer c.ShutDown()
					go c.serve(held)
					fill := func(prefix string, priority int) int {
						for n := range 2 * size {
							c.put(fmt.Sprint(prefix, n), priority, 0)
						}
						return len(strings.Fields(c.take()))
					}
					second := source.PriorityDeletion + source.PriorityRetry - first + source.PriorityChange
					if got := fill("a", first); got != each {
						t.Errorf("one side took %[2]d of %[1]d slots, want %[3]d", size, got, each)
					}
					if got := fill("b", second); got != size-each {
						t.Errorf("the other side took %[2]d of %[1]d slots, want %[3]d", size, got, size-each)
					}
					c.AddWithOpts(priorityqueue.AddOpts{}, tickOf("c"))
					if got := c.take(); got != "ct" {
						t.Errorf("a tick waited for a slot: %q", got)
					}
					c.Release(named("a0"))
					if got := c.take(); len(strings.Fields(got)) != 1 {
						t.Errorf("a free slot is taken %q, want one name", got)
					}
				})
			})
		}
	}
}

// TestTurnsAreShared shows the shares of the priorities. With one slot, the turns can be counted.
func TestTurnsAreShared(t *testing.T) {
	const each = 100
	synctest.Test(t, func(t *testing.T) {
		c := newClient(source.NewPlaces(1, source.PlacesObserver{}))
		defer c.ShutDown()
		for n := range each {
			for what, priority := range map[string]int{
				"r": source.PriorityResume, "y": source.PriorityRetry, "c": source.PriorityChange,
				"d": source.PriorityDeletion,
			} {
				c.put(fmt.Sprint(what, n), priority, 0)
			}
		}
		go c.serve(released)
		order := strings.Fields(c.take())
		got := map[byte]int{}
		for _, name := range order[:60] {
			got[name[0]]++
		}
		if d := cmp.Diff(map[byte]int{'d': 32, 'c': 16, 'y': 8, 'r': 4}, got); d != "" {
			t.Errorf("the first 60 turns: -want, +got:\n%s", d)
		}
		if first := strings.Join(order[:9], " "); first != "d0 d1 d2 d3 d4 d5 d6 d7 c0" {
			t.Errorf("got the order %s, want the urgent ones first", first)
		}
		if len(order) != 4*each || len(slices.Compact(slices.Sorted(slices.Values(order)))) != 4*each {
			t.Errorf("served %d requests", len(order))
		}
	})
}

// TestQueuesShare shows that the queues of namespaces share their slots and turns, and that a queue without a worker
// blocks no other.
func TestQueuesShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		places := source.NewPlaces(1, source.PlacesObserver{})
		a, b, silent := newClient(places), newClient(places), newClient(places)
		defer a.ShutDown()
		defer silent.ShutDown()
		silent.put("s", source.PriorityDeletion, 0)
		go a.serve(held)
		go b.serve(held)
		a.put("a0", source.PriorityChange, 0)
		synctest.Wait()
		b.put("b0", source.PriorityChange, 0)
		a.put("a1", source.PriorityChange, 0)
		if got := a.take() + "|" + b.take(); got != "a0|" {
			t.Errorf("there is one slot, served: %s", got)
		}
		a.Release(named("a0"))
		if got := a.take() + "|" + b.take(); got != "|b0" {
			t.Errorf("the request that waited longest is not next: %s", got)
		}
		b.put("b1", source.PriorityDeletion, 0)
		b.ShutDown()
		if got := a.take(); got != "" {
			t.Errorf("the only slot is taken, but the first queue got %s", got)
		}
		b.Release(named("b0"))
		if got := a.take(); got != "a1" {
			t.Errorf("the slot of a queue that was shut down is not free: %q", got)
		}
		b.put("b2", source.PriorityDeletion, 0)
		if !b.ShuttingDown() || b.Len() != 0 {
			t.Error("a queue that was shut down keeps requests")
		}
	})
}

// TestQueuesThatAreLeft shows that a queue whose worker stopped does not block the others.
func TestQueuesThatAreLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		places := source.NewPlaces(10, source.PlacesObserver{})
		left, asked := newClient(places), newClient(places)
		defer left.ShutDown()
		defer asked.ShutDown()
		left.put("l0", source.PriorityChange, 0)
		left.GetWithPriority()
		left.put("l1", source.PriorityDeletion, 0)
		go asked.serve(released)
		asked.put("a0", source.PriorityResume, 0)
		if got := asked.take(); got != "a0" {
			t.Errorf("a free slot is not given to the only queue with a worker: %q", got)
		}
	})
}

// listener records the notifications of the slots.
type listener struct {
	mu      sync.Mutex
	waiting int
	told    []source.Stall
}

func (l *listener) observer() source.PlacesObserver {
	return source.PlacesObserver{
		Waiting: func(more int) { l.waiting += more }, // called under the lock of the slots
		Stalled: func(s source.Stall) {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.told = append(l.told, s)
		},
	}
}

func (l *listener) want(t *testing.T, when string, want ...source.Stall) {
	t.Helper()
	synctest.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	if d := cmp.Diff(want, l.told); d != "" {
		t.Errorf("%s: -want, +got:\n%s", when, d)
	}
	l.told = nil
}

// TestStallsAreToldOnce shows that a stall is reported once, after some patience, and then its end.
func TestStallsAreToldOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &listener{}
		c := newClient(source.NewPlaces(3, l.observer()))
		go c.serve(held)
		c.put("a", source.PriorityChange, 0)
		c.put("b", source.PriorityRetry, 0)
		time.Sleep(time.Hour)
		l.want(t, "all slots are taken, and nothing waits")
		since := time.Now()
		c.put("w1", source.PriorityRetry, 0)
		c.put("w2", source.PriorityResume, 0)
		time.Sleep(source.Patience - time.Second)
		l.want(t, "before the patience is over")
		time.Sleep(2 * time.Second)
		l.want(t, "after the patience is over", source.Stall{Waiting: 2, Since: since})
		time.Sleep(time.Hour)
		c.Release(named("a"))
		time.Sleep(time.Hour)
		l.want(t, "one of two got a slot")
		since = time.Now()
		c.put("d1", source.PriorityDeletion, 0)
		c.put("d2", source.PriorityDeletion, 0)
		time.Sleep(time.Hour)
		l.want(
			t, "deletions have slots and stalls of their own",
			source.Stall{Deletions: true, Waiting: 1, Since: since},
		)
		c.Release(named("b"))
		l.want(t, "no deletion waits", source.Stall{Deletions: true})
		c.Release(named("w1"))
		l.want(t, "nothing waits", source.Stall{})
		since = time.Now()
		c.put("a", source.PriorityChange, 0)
		time.Sleep(time.Hour)
		l.want(t, "a second stall", source.Stall{Waiting: 1, Since: since})
		if l.waiting != 1 {
			t.Errorf("%d requests wait, want one", l.waiting)
		}
		c.ShutDown()
		time.Sleep(time.Hour)
		l.want(t, "a shutdown does not end a stall")
		if l.waiting != 0 {
			t.Errorf("%d requests wait in a queue that was shut down", l.waiting)
		}
	})
}

// TestNoStallWhileWorkGoesOn shows that a long queue is not a stall while requests are served.
func TestNoStallWhileWorkGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &listener{}
		c := newClient(source.NewPlaces(2, l.observer()))
		defer c.ShutDown()
		for n := range 1000 {
			c.put(fmt.Sprint(n), source.PriorityChange, 0)
		}
		go c.serve(func(source.Request) bool { time.Sleep(9 * time.Second); return true })
		time.Sleep(3 * time.Hour)
		l.want(t, "many requests that are served")
	})
}

// TestStallsOfNow shows that Stalls reports all present stalls at once, including those that are not logged yet.
func TestStallsOfNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		places := source.NewPlaces(2, source.PlacesObserver{})
		c := newClient(places)
		go c.serve(held)
		c.put("a", source.PriorityChange, 0)
		synctest.Wait()
		if all := places.CurrentStalls(); len(all) > 0 || c.Len() != 0 {
			t.Errorf("got stalls without waiting requests: %v", all)
		}
		since := time.Now()
		c.put("b", source.PriorityChange, 0)
		c.put("c", source.PriorityChange, 0)
		c.put("d", source.PriorityDeletion, 0)
		c.put("e", source.PriorityDeletion, 0)
		synctest.Wait()
		want := []source.Stall{{Waiting: 2, Since: since}, {Deletions: true, Waiting: 1, Since: since}}
		if d := cmp.Diff(want, places.CurrentStalls()); d != "" || c.Len() != 3 {
			t.Errorf("%d requests wait, want 3; stalls: -want, +got:\n%s", c.Len(), d)
		}
		c.ShutDown()
	})
}
