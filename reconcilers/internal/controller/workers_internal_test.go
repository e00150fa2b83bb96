package controller

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/util/workqueue"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/indexes"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/source"
)

// startWorker starts a worker on the queue, as a controller does. The returned function stops it.
func (w *objectFixture) startWorker(t *testing.T) (stop func()) {
	c := w.controller
	c.queue.Store(
		source.NewQueue(
			c.workers.slots,
			workqueue.NewTypedItemExponentialFailureRateLimiter[source.Request](time.Second, time.Minute),
		),
	)
	ctx, cancel := context.WithCancel(logf.IntoContext(t.Context(), w.errorLogger()))
	c.passContext = ctx
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

// TestPanicsOfPassesAreContained shows that a panic of a pass is recovered and retried. A pass has its own goroutine,
// where controller-runtime would not recover it.
func TestPanicsOfPassesAreContained(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newObjectFixture(t, newCreateHandler("c"))
		reads := 0
		w.controller.store = changingStore{w.cache, func() {
			if reads++; reads%2 == 1 && reads < 6 { // every second read belongs to the log line
				panic("a mistake of the framework")
			}
		}, nothing}
		stop := w.startWorker(t)
		w.controller.queue.Load().Add(request)
		time.Sleep(time.Minute)
		stop()
		w.requireCalls("the pass is retried until it succeeds", "c")
		if len(w.logLines) != 3 || !strings.Contains(
			w.logLines[0], "a mistake of the framework",
		) || !strings.Contains(w.logLines[0], `"name"="a"`) {
			t.Fatalf("want one line for each panic, with its object: %q", w.logLines)
		}
		if !strings.Contains(w.logLines[0], `"uid"="u1"`) || !strings.Contains(w.logLines[0], `"stack"`) {
			t.Errorf("the line lacks the uid or the stack: %q", w.logLines)
		}
	})
}

// TestPanicsInPausesAreLogged shows that a panic ends the retries during a pause and is logged at once, as there is no
// later attempt.
func TestPanicsInPausesAreLogged(t *testing.T) {
	w := newObjectFixture(t, newCreateHandler("c"))
	w.controller.turn.Gate = closedGate{}
	reads := 0
	w.controller.store = changingStore{w.cache, func() {
		if reads++; reads == 2 {
			panic("a mistake of the framework")
		}
	}, nothing}
	w.controller.retryDuringPause(t.Context(), request)
	if len(w.logLines) != 1 || !strings.Contains(w.logLines[0], "a mistake of the framework") ||
		!strings.Contains(w.logLines[0], `"name"="a"`) {
		t.Errorf("want one line with the object, got %q", w.logLines)
	}
}

// countingGate is an open gate that counts the passes that have entered.
type countingGate struct{ entered atomic.Int64 }

func (*countingGate) Open() bool    { return true }
func (g *countingGate) Enter() bool { return g.entered.Add(1) > 0 }
func (g *countingGate) Leave()      { g.entered.Add(-1) }

// TestPanicsKeepUnwrittenResultsCounted shows that an object with unsaved results stays counted in the gate if the next
// pass over it panics. Otherwise a peer could begin before the results are stored.
func TestPanicsKeepUnwrittenResultsCounted(t *testing.T) {
	for name, install := range map[string]func(w *objectFixture, isBroken *atomic.Bool){
		"BeforeTheMemory": func(w *objectFixture, isBroken *atomic.Bool) {
			var reads atomic.Int64
			w.controller.store = changingStore{w.cache, func() {
				if isBroken.Load() && reads.Add(1)%2 == 1 { // every second read belongs to the log line
					panic("a mistake of the framework")
				}
			}, nothing}
		},
		"InTheChanges": func(w *objectFixture, isBroken *atomic.Bool) {
			w.afterWrite = func() {
				if isBroken.Load() {
					panic("a mistake of the framework")
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var isBroken atomic.Bool
				w, gate := newObjectFixture(t, newCreateHandler("c")), &countingGate{}
				install(w, &isBroken)
				w.controller.turn.Gate = gate
				w.controller.unwrittenObjects.beginRun()
				w.writeErr = unavailable()
				stop := w.startWorker(t)
				defer stop()
				w.controller.queue.Load().Add(request)
				synctest.Wait()
				isBroken.Store(true)
				time.Sleep(10 * time.Second)
				if entered := gate.entered.Load(); entered != 1 {
					t.Errorf("%d objects are counted after panics, want the one with unsaved results", entered)
				}
				w.api.mu.Lock()
				w.writeErr = nil
				w.api.mu.Unlock()
				isBroken.Store(false)
				time.Sleep(time.Minute)
				if entered := gate.entered.Load(); entered != 0 {
					t.Errorf("%d objects are counted after the results were stored", entered)
				}
				w.requireCalls("no handler is repeated", "c")
			})
		})
	}
}

// closedGate is the gate of a paused operator.
type closedGate struct{}

func (closedGate) Open() bool  { return false }
func (closedGate) Enter() bool { return false }
func (closedGate) Leave()      {}

// TestBackgroundOfAFailure shows that a failed controller ends its background handlers although its context continues,
// so that it can be restarted.
func TestBackgroundOfAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newObjectFixture(t)
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

// TestExitBeforeHandlersMayBegin shows that an exit does not wait for handlers that are held back until indices are
// complete.
func TestExitBeforeHandlersMayBegin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newObjectFixture(t, newCreateHandler("c"))
		w.controller.turn.Readiness = indexes.NewReadiness()
		stop := w.startWorker(t)
		w.controller.queue.Load().Add(request)
		time.Sleep(time.Hour)
		stop()
		synctest.Wait()
		w.requireCalls("without complete indices")
	})
}
