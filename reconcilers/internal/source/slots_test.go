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
					c := newQueueFixture(source.NewSlots(size, source.SlotsObserver{}))
					defer c.ShutDown()
					go c.serve(holdRequest)
					fill := func(prefix string, priority int) int {
						for n := range 2 * size {
							c.addRequest(fmt.Sprint(prefix, n), priority, 0)
						}
						return len(strings.Fields(c.takeServed()))
					}
					second := source.PriorityDeletion + source.PriorityRetry - first + source.PriorityChange
					if got := fill("a", first); got != each {
						t.Errorf("one side took %[2]d of %[1]d slots, want %[3]d", size, got, each)
					}
					if got := fill("b", second); got != size-each {
						t.Errorf("the other side took %[2]d of %[1]d slots, want %[3]d", size, got, size-each)
					}
					c.AddWithOpts(priorityqueue.AddOpts{}, tickOf("c"))
					if got := c.takeServed(); got != "ct" {
						t.Errorf("a tick waited for a slot: %q", got)
					}
					c.Release(requestNamed("a0"))
					if got := c.takeServed(); len(strings.Fields(got)) != 1 {
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
		c := newQueueFixture(source.NewSlots(1, source.SlotsObserver{}))
		defer c.ShutDown()
		for n := range each {
			for what, priority := range map[string]int{
				"r": source.PriorityResume, "y": source.PriorityRetry, "c": source.PriorityChange,
				"d": source.PriorityDeletion,
			} {
				c.addRequest(fmt.Sprint(what, n), priority, 0)
			}
		}
		go c.serve(releaseRequest)
		order := strings.Fields(c.takeServed())
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
		places := source.NewSlots(1, source.SlotsObserver{})
		a, b, silent := newQueueFixture(places), newQueueFixture(places), newQueueFixture(places)
		defer a.ShutDown()
		defer silent.ShutDown()
		silent.addRequest("s", source.PriorityDeletion, 0)
		go a.serve(holdRequest)
		go b.serve(holdRequest)
		a.addRequest("a0", source.PriorityChange, 0)
		synctest.Wait()
		b.addRequest("b0", source.PriorityChange, 0)
		a.addRequest("a1", source.PriorityChange, 0)
		if got := a.takeServed() + "|" + b.takeServed(); got != "a0|" {
			t.Errorf("there is one slot, served: %s", got)
		}
		a.Release(requestNamed("a0"))
		if got := a.takeServed() + "|" + b.takeServed(); got != "|b0" {
			t.Errorf("the request that waited longest is not next: %s", got)
		}
		b.addRequest("b1", source.PriorityDeletion, 0)
		b.ShutDown()
		if got := a.takeServed(); got != "" {
			t.Errorf("the only slot is taken, but the first queue got %s", got)
		}
		b.Release(requestNamed("b0"))
		if got := a.takeServed(); got != "a1" {
			t.Errorf("the slot of a queue that was shut down is not free: %q", got)
		}
		b.addRequest("b2", source.PriorityDeletion, 0)
		if !b.ShuttingDown() || b.Len() != 0 {
			t.Error("a queue that was shut down keeps requests")
		}
	})
}

// TestQueuesThatAreLeft shows that a queue whose worker stopped does not block the others.
func TestQueuesThatAreLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		places := source.NewSlots(10, source.SlotsObserver{})
		left, asked := newQueueFixture(places), newQueueFixture(places)
		defer left.ShutDown()
		defer asked.ShutDown()
		left.addRequest("l0", source.PriorityChange, 0)
		left.GetWithPriority()
		left.addRequest("l1", source.PriorityDeletion, 0)
		go asked.serve(releaseRequest)
		asked.addRequest("a0", source.PriorityResume, 0)
		if got := asked.takeServed(); got != "a0" {
			t.Errorf("a free slot is not given to the only queue with a worker: %q", got)
		}
	})
}

// slotsRecorder records the notifications of the slots.
type slotsRecorder struct {
	mu      sync.Mutex
	waiting int
	stalls  []source.Stall
}

func (l *slotsRecorder) observer() source.SlotsObserver {
	return source.SlotsObserver{
		OnWaiting: func(more int) { l.waiting += more }, // called under the lock of the slots
		OnStall: func(s source.Stall) {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.stalls = append(l.stalls, s)
		},
	}
}

func (l *slotsRecorder) requireStalls(t *testing.T, when string, want ...source.Stall) {
	t.Helper()
	synctest.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	if d := cmp.Diff(want, l.stalls); d != "" {
		t.Errorf("%s: -want, +got:\n%s", when, d)
	}
	l.stalls = nil
}

// TestStallsAreToldOnce shows that a stall is reported once, after some patience, and then its end.
func TestStallsAreToldOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &slotsRecorder{}
		c := newQueueFixture(source.NewSlots(3, l.observer()))
		go c.serve(holdRequest)
		c.addRequest("a", source.PriorityChange, 0)
		c.addRequest("b", source.PriorityRetry, 0)
		time.Sleep(time.Hour)
		l.requireStalls(t, "all slots are taken, and nothing waits")
		since := time.Now()
		c.addRequest("w1", source.PriorityRetry, 0)
		c.addRequest("w2", source.PriorityResume, 0)
		time.Sleep(source.StallTimeout - time.Second)
		l.requireStalls(t, "before the patience is over")
		time.Sleep(2 * time.Second)
		l.requireStalls(t, "after the patience is over", source.Stall{Waiting: 2, Since: since})
		time.Sleep(time.Hour)
		c.Release(requestNamed("a"))
		time.Sleep(time.Hour)
		l.requireStalls(t, "one of two got a slot")
		since = time.Now()
		c.addRequest("d1", source.PriorityDeletion, 0)
		c.addRequest("d2", source.PriorityDeletion, 0)
		time.Sleep(time.Hour)
		l.requireStalls(
			t, "deletions have slots and stalls of their own",
			source.Stall{Deletions: true, Waiting: 1, Since: since},
		)
		c.Release(requestNamed("b"))
		l.requireStalls(t, "no deletion waits", source.Stall{Deletions: true})
		c.Release(requestNamed("w1"))
		l.requireStalls(t, "nothing waits", source.Stall{})
		since = time.Now()
		c.addRequest("a", source.PriorityChange, 0)
		time.Sleep(time.Hour)
		l.requireStalls(t, "a second stall", source.Stall{Waiting: 1, Since: since})
		if l.waiting != 1 {
			t.Errorf("%d requests wait, want one", l.waiting)
		}
		c.ShutDown()
		time.Sleep(time.Hour)
		l.requireStalls(t, "a shutdown does not end a stall")
		if l.waiting != 0 {
			t.Errorf("%d requests wait in a queue that was shut down", l.waiting)
		}
	})
}

// TestNoStallWhileWorkGoesOn shows that a long queue is not a stall while requests are served.
func TestNoStallWhileWorkGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &slotsRecorder{}
		c := newQueueFixture(source.NewSlots(2, l.observer()))
		defer c.ShutDown()
		for n := range 1000 {
			c.addRequest(fmt.Sprint(n), source.PriorityChange, 0)
		}
		go c.serve(func(source.Request) bool { time.Sleep(9 * time.Second); return true })
		time.Sleep(3 * time.Hour)
		l.requireStalls(t, "many requests that are served")
	})
}

// TestStallsOfNow shows that Stalls reports all present stalls at once, including those that are not logged yet.
func TestStallsOfNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		places := source.NewSlots(2, source.SlotsObserver{})
		c := newQueueFixture(places)
		go c.serve(holdRequest)
		c.addRequest("a", source.PriorityChange, 0)
		synctest.Wait()
		if all := places.CurrentStalls(); len(all) > 0 || c.Len() != 0 {
			t.Errorf("got stalls without waiting requests: %v", all)
		}
		since := time.Now()
		c.addRequest("b", source.PriorityChange, 0)
		c.addRequest("c", source.PriorityChange, 0)
		c.addRequest("d", source.PriorityDeletion, 0)
		c.addRequest("e", source.PriorityDeletion, 0)
		synctest.Wait()
		want := []source.Stall{{Waiting: 2, Since: since}, {Deletions: true, Waiting: 1, Since: since}}
		if d := cmp.Diff(want, places.CurrentStalls()); d != "" || c.Len() != 3 {
			t.Errorf("%d requests wait, want 3; stalls: -want, +got:\n%s", c.Len(), d)
		}
		c.ShutDown()
	})
}
