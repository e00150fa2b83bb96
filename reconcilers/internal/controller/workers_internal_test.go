package controller

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/util/workqueue"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/indexes"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/source"
)

// served runs the kind's queue as a controller does, until the test ends.
func (w *world) served(t *testing.T) (stop func()) {
	c := w.controller
	c.queue.Store(
		source.NewQueue(
			c.workers.places,
			workqueue.NewTypedItemExponentialFailureRateLimiter[source.Request](time.Second, time.Minute),
		),
	)
	ctx, cancel := context.WithCancel(logf.IntoContext(t.Context(), w.log()))
	c.passing = ctx
	go func() {
		for {
			r, _, shutdown := c.queue.Load().GetWithPriority()
			if shutdown {
				return
			}
			_, _ = c.Reconcile(ctx, r)
			c.queue.Load().Done(r)
		}
	}()
	return func() {
		cancel()
		c.queue.Load().ShutDown()
		c.passes.Wait()
	}
}

// A pass runs on a goroutine of its own, where nobody else would stop a panic.
func TestPanicsOfPassesAreContained(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, creating("c"))
		reads := 0
		w.controller.store = moving{w.cache, func() {
			if reads++; reads%2 == 1 && reads < 6 { // every other one is that of the line
				panic("a mistake of the framework")
			}
		}, nothing}
		stop := w.served(t)
		w.controller.queue.Load().Add(request)
		time.Sleep(time.Minute)
		stop()
		w.wantCalls("it is tried again until it works", "c")
		if len(w.logged) != 3 || !strings.Contains(
			w.logged[0], "a mistake of the framework",
		) || !strings.Contains(w.logged[0], `"name"="a"`) {
			t.Fatalf("each is told, with its object: %q", w.logged)
		}
		if !strings.Contains(w.logged[0], `"uid"="u1"`) || !strings.Contains(w.logged[0], `"stack"`) {
			t.Errorf("the line has the uid and the stack: %q", w.logged)
		}
	})
}

// A mistake of the framework ends the attempts to write in a pause, and is told, as nobody tries again before its end.
func TestPanicsInAPauseAreTold(t *testing.T) {
	w := newWorld(t, creating("c"))
	w.controller.turn.Gate = closed{}
	reads := 0
	w.controller.store = moving{w.cache, func() {
		if reads++; reads == 2 {
			panic("a mistake of the framework")
		}
	}, nothing}
	w.controller.insist(t.Context(), request)
	if len(w.logged) != 1 || !strings.Contains(w.logged[0], "a mistake of the framework") ||
		!strings.Contains(w.logged[0], `"name"="a"`) {
		t.Errorf("want one line, with the object: %q", w.logged)
	}
}

// closed is the gate of an operator that pauses.
type closed struct{}

func (closed) Open() bool  { return false }
func (closed) Enter() bool { return false }
func (closed) Leave()      {}

// A controller that fails ends what runs in the background, though its context goes on: it is tried again.
func TestBackgroundOfAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		ended := make(chan struct{})
		go func() {
			w.controller.beginBackground(t.Context())()
			close(ended)
		}()
		select {
		case <-ended:
		case <-time.After(time.Hour):
			t.Error("the controller waits for the end of its context")
		}
	})
}

// Handlers are held back until indices are complete; an exit meanwhile waits for nobody.
func TestExitBeforeHandlersMayBegin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, creating("c"))
		w.controller.turn.Readiness = indexes.NewReadiness()
		stop := w.served(t)
		w.controller.queue.Load().Add(request)
		time.Sleep(time.Hour)
		stop()
		synctest.Wait()
		w.wantCalls("nobody is called")
	})
}
