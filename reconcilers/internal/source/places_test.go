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

func TestPlacesAreKept(t *testing.T) {
	for size, each := range map[int]int{1: 1, 2: 1, 3: 2, 9: 8, 10: 9, 20: 18, 100: 90} {
		for _, first := range []int{source.PriorityDeletion, source.PriorityChange} {
			t.Run(fmt.Sprint(size, " ", first), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					c := newClient(source.NewPlaces(size, source.Observer{}))
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
						t.Errorf("of %d places, one side took %d, want %d", size, got, each)
					}
					if got := fill("b", second); got != size-each {
						t.Errorf("of %d places, the other side took %d, want %d", size, got, size-each)
					}
					c.AddWithOpts(priorityqueue.AddOpts{}, tickOf("c"))
					if got := c.take(); got != "ct" {
						t.Errorf("ticks need no place: %q", got)
					}
					c.Release(named("a0"))
					if got := c.take(); len(strings.Fields(got)) != 1 {
						t.Errorf("a place that is left is taken again, once: %q", got)
					}
				})
			})
		}
	}
}

// With one place, the turns can be counted.
func TestTurnsAreShared(t *testing.T) {
	const each = 100
	synctest.Test(t, func(t *testing.T) {
		c := newClient(source.NewPlaces(1, source.Observer{}))
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
			t.Errorf("of the first 60 turns: -want, +got:\n%s", d)
		}
		if first := strings.Join(order[:9], " "); first != "d0 d1 d2 d3 d4 d5 d6 d7 c0" {
			t.Errorf("the urgent ones go first: %s", first)
		}
		if len(order) != 4*each || len(slices.Compact(slices.Sorted(slices.Values(order)))) != 4*each {
			t.Errorf("%d were served", len(order))
		}
	})
}

// The queues of namespaces share their places and turns; one that nobody asks holds nobody up.
func TestQueuesShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		places := source.NewPlaces(1, source.Observer{})
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
			t.Errorf("there is one place: %s", got)
		}
		a.Release(named("a0"))
		if got := a.take() + "|" + b.take(); got != "|b0" {
			t.Errorf("the first come first: %s", got)
		}
		b.put("b1", source.PriorityDeletion, 0)
		b.ShutDown()
		if got := a.take(); got != "" {
			t.Errorf("b0 is still being served, but a has got %s", got)
		}
		b.Release(named("b0"))
		if got := a.take(); got != "a1" {
			t.Errorf("b is gone, and its place is free: %q", got)
		}
		b.put("b2", source.PriorityDeletion, 0)
		if !b.ShuttingDown() || b.Len() != 0 {
			t.Error("nothing is kept in a queue that is shut down")
		}
	})
}

// A queue is out of the way as soon as nobody asks it any more, as well.
func TestQueuesThatAreLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		places := source.NewPlaces(10, source.Observer{})
		left, asked := newClient(places), newClient(places)
		defer left.ShutDown()
		defer asked.ShutDown()
		left.put("l0", source.PriorityChange, 0)
		left.GetWithPriority()
		left.put("l1", source.PriorityDeletion, 0)
		go asked.serve(released)
		asked.put("a0", source.PriorityResume, 0)
		if got := asked.take(); got != "a0" {
			t.Errorf("there is room for it, and nobody else asks: %q", got)
		}
	})
}

// listener notes what it is told of the places.
type listener struct {
	mu      sync.Mutex
	waiting int
	told    []source.Stall
}

func (l *listener) observer() source.Observer {
	return source.Observer{
		Waiting: func(more int) { l.waiting += more }, // under the lock of the places
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

func TestStallsAreToldOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &listener{}
		c := newClient(source.NewPlaces(3, l.observer()))
		go c.serve(held)
		c.put("a", source.PriorityChange, 0)
		c.put("b", source.PriorityRetry, 0)
		time.Sleep(time.Hour)
		l.want(t, "all are taken, and nobody waits")
		since := time.Now()
		c.put("w1", source.PriorityRetry, 0)
		c.put("w2", source.PriorityResume, 0)
		time.Sleep(source.Patience - time.Second)
		l.want(t, "not for long")
		time.Sleep(2 * time.Second)
		l.want(t, "for too long", source.Stall{Waiting: 2, Since: since})
		time.Sleep(time.Hour)
		c.Release(named("a"))
		time.Sleep(time.Hour)
		l.want(t, "one got a place, and the other waits still")
		since = time.Now()
		c.put("d1", source.PriorityDeletion, 0)
		c.put("d2", source.PriorityDeletion, 0)
		time.Sleep(time.Hour)
		l.want(
			t, "the other side has places of its own, and a stall",
			source.Stall{Deletions: true, Waiting: 1, Since: since},
		)
		c.Release(named("b"))
		l.want(t, "no deletion waits", source.Stall{Deletions: true})
		c.Release(named("w1"))
		l.want(t, "nobody waits", source.Stall{})
		since = time.Now()
		c.put("a", source.PriorityChange, 0)
		time.Sleep(time.Hour)
		l.want(t, "again", source.Stall{Waiting: 1, Since: since})
		if l.waiting != 1 {
			t.Errorf("%d wait, want a", l.waiting)
		}
		c.ShutDown()
		time.Sleep(time.Hour)
		l.want(t, "that it ends is no relief")
		if l.waiting != 0 {
			t.Errorf("%d wait in a queue that is shut down", l.waiting)
		}
	})
}

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
		l.want(t, "there is much to do, and it is done")
	})
}

// Whoever asks is told of stalls at once, also of those that nobody is told of yet; and of what waits.
func TestStallsOfNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		places := source.NewPlaces(2, source.Observer{})
		c := newClient(places)
		go c.serve(held)
		c.put("a", source.PriorityChange, 0)
		synctest.Wait()
		if all := places.Stalls(); len(all) > 0 || c.Len() != 0 {
			t.Errorf("nobody waits: got %v", all)
		}
		since := time.Now()
		c.put("b", source.PriorityChange, 0)
		c.put("c", source.PriorityChange, 0)
		c.put("d", source.PriorityDeletion, 0)
		c.put("e", source.PriorityDeletion, 0)
		synctest.Wait()
		want := []source.Stall{{Waiting: 2, Since: since}, {Deletions: true, Waiting: 1, Since: since}}
		if d := cmp.Diff(want, places.Stalls()); d != "" || c.Len() != 3 {
			t.Errorf("%d wait, want 3; stalls, -want, +got:\n%s", c.Len(), d)
		}
		c.ShutDown()
	})
}
