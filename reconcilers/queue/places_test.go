package queue_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/queue"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/source"
)

func TestPlacesAreKept(t *testing.T) {
	for size, each := range map[int]int{1: 1, 2: 1, 3: 2, 9: 8, 10: 9, 20: 18, 100: 90} {
		for _, first := range []int{source.PriorityDeletion, source.PriorityChange} {
			t.Run(fmt.Sprint(size, " ", first), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					c := newClient(queue.NewPlaces(size, queue.Observer{}))
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
		c := newClient(queue.NewPlaces(1, queue.Observer{}))
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
		places := queue.NewPlaces(1, queue.Observer{})
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
