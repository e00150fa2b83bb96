package queue_test

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/queue"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/source"
)

// listener notes what it is told of the places.
type listener struct {
	mu      sync.Mutex
	waiting int
	told    []queue.Stall
}

func (l *listener) observer() queue.Observer {
	return queue.Observer{
		Waiting: func(more int) { l.waiting += more }, // under the lock of the places
		Stalled: func(s queue.Stall) {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.told = append(l.told, s)
		},
	}
}

func (l *listener) want(t *testing.T, when string, want ...queue.Stall) {
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
		c := newClient(queue.NewPlaces(3, l.observer()))
		go c.serve(held)
		c.put("a", source.PriorityChange, 0)
		c.put("b", source.PriorityRetry, 0)
		time.Sleep(time.Hour)
		l.want(t, "all are taken, and nobody waits")
		since := time.Now()
		c.put("w1", source.PriorityRetry, 0)
		c.put("w2", source.PriorityResume, 0)
		time.Sleep(queue.Patience - time.Second)
		l.want(t, "not for long")
		time.Sleep(2 * time.Second)
		l.want(t, "for too long", queue.Stall{Waiting: 2, Since: since})
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
			queue.Stall{Deletions: true, Waiting: 1, Since: since},
		)
		c.Release(named("b"))
		l.want(t, "no deletion waits", queue.Stall{Deletions: true})
		c.Release(named("w1"))
		l.want(t, "nobody waits", queue.Stall{})
		since = time.Now()
		c.put("a", source.PriorityChange, 0)
		time.Sleep(time.Hour)
		l.want(t, "again", queue.Stall{Waiting: 1, Since: since})
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
		c := newClient(queue.NewPlaces(2, l.observer()))
		defer c.ShutDown()
		for n := range 1000 {
			c.put(fmt.Sprint(n), source.PriorityChange, 0)
		}
		go c.serve(func(source.Request) bool { time.Sleep(9 * time.Second); return true })
		time.Sleep(3 * time.Hour)
		l.want(t, "there is much to do, and it is done")
	})
}
