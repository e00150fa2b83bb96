package controller_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/cause"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
)

// gate counts what is inside.
type gate struct {
	mu     sync.Mutex
	closed bool
	inside int
}

func (g *gate) Open() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return !g.closed
}

func (g *gate) Enter() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.closed {
		g.inside++
	}
	return !g.closed
}

func (g *gate) Leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.inside--
}

func (g *gate) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
}

func (g *gate) want(t *testing.T, when string, inside int) {
	t.Helper()
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.inside != inside {
		t.Errorf("%s: %d count as running, want %d", when, g.inside, inside)
	}
}

func TestGateAndWrites(t *testing.T) {
	tests := map[string]struct {
		reason string
		play   func(w *writing)
	}{
		"Closed": {
			"nothing begins behind a closed gate", func(w *writing) {
				w.gate.close()
				w.create("a", "x")
				w.want("it is closed")
			},
		},
		"AtRest": {
			"nothing counts that is over", func(w *writing) {
				w.create("a", "x")
				w.want("it is open", "c x")
				w.gate.want(w.t, "it is written", 0)
			},
		},
		"Unwritten": {
			"what came of a handler counts until it is written", func(w *writing) {
				w.fail(true)
				w.create("a", "x")
				w.create("a", "y")
				w.want("both", "c x", "c y")
				w.gate.want(w.t, "none is written", 2)
				time.Sleep(time.Minute)
				w.gate.want(w.t, "nor later", 2)
				w.fail(false)
				time.Sleep(10 * time.Minute)
				w.gate.want(w.t, "both are", 0)
				w.want("once is enough")
			},
		},
		"UnwrittenInAPause": {
			"it is tried again soon in a pause, until others may take over", func(w *writing) {
				w.fail(true)
				w.create("a", "x")
				time.Sleep(5 * time.Minute)
				w.want("once is enough", "c x")
				began := w.pause(func() { time.Sleep(12 * time.Second); w.fail(false) })
				if took := time.Since(began); took < 12*time.Second || took > 20*time.Second {
					w.t.Errorf("the pause waits for %s", took)
				}
				if !w.written("x") {
					w.t.Error("the next operator does not know of it")
				}
				w.gate.want(w.t, "in the end", 0)
				w.want("no handler is called in a pause")
			},
		},
		"NeverWritten": {
			"a pause does not wait for ever", func(w *writing) {
				w.fail(true)
				w.create("a", "x")
				began := w.pause(func() {})
				if took := time.Since(began); took != 30*time.Second {
					w.t.Errorf("the pause waits for %s", took)
				}
				w.gate.want(w.t, "in the end", 0)
			},
		},
		"UnwrittenAtTheExit": {
			"an exit does not wait: the next process calls the handler again", func(w *writing) {
				w.fail(true)
				w.create("a", "x")
				began := time.Now()
				w.stop(nil)
				if took := time.Since(began); took > 2*time.Second {
					w.t.Errorf("the exit waits for %s", took)
				}
				w.gate.want(w.t, "in the end", 0)
			},
		},
		"SlowAtTheExit": {
			"nor for a handler that ends meanwhile", func(w *writing) {
				w.slow = 2 * time.Second
				w.create("a", "x")
				w.fail(true)
				w.stop(nil)
				w.gate.want(w.t, "in the end", 0)
			},
		},
		"Gone": {
			"of an object that is gone, there is nothing left to be written", func(w *writing) {
				w.create("a", "x")
				w.create("a", "y")
				w.remove("a", "x")
				w.server.Discard(stored, "a", "y")
				time.Sleep(time.Minute)
				w.gate.want(w.t, "both are", 0)
				w.want("all of them", "c x", "c y", "d x")
			},
		},
		"Ticks": {
			"nor of a tick between two of them", func(w *writing) {
				w.create("a", "x")
				time.Sleep(time.Hour)
				w.gate.want(w.t, "nothing is running", 0)
			},
		},
		"AnotherWaits": {
			"a pause does not wait for the next attempt of a handler", func(w *writing) {
				w.fail(true)
				w.create("a", "x")
				began := w.pause(func() { time.Sleep(5 * time.Second); w.fail(false) })
				if took := time.Since(began); took > 15*time.Second {
					w.t.Errorf("the pause waits for %s", took)
				}
			},
		},
		"NoAttemptsAreWanted": {
			"without delays for errors, an object waits for its next event, in a pause as well", func(w *writing) {
				w.fail(true)
				w.create("a", "x")
				began := w.pause(func() {})
				if took := time.Since(began); took > 0 {
					w.t.Errorf("the pause waits for %s", took)
				}
			},
		},
		"DuringTheHandler": {
			"a handler that ends in the pause is written, too", func(w *writing) {
				w.slow = 10 * time.Second
				w.create("a", "x")
				w.gate.want(w.t, "it is running", 1)
				w.fail(true)
				began := w.pause(func() { time.Sleep(15 * time.Second); w.fail(false) })
				if took := time.Since(began); took < 15*time.Second || took > 25*time.Second || !w.written("x") {
					w.t.Errorf("the pause waits for %s, written: %v", took, w.written("x"))
				}
				w.gate.want(w.t, "in the end", 0)
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			defer explain(t, tc.reason)
			synctest.Test(t, func(t *testing.T) { tc.play(newWriting(t)) })
		})
	}
}

// writing is a site whose writes may fail.
type writing struct {
	*site
	gate  *gate
	stop  func(error)
	slow  time.Duration // how long the handler takes
	fails bool
}

func newWriting(t *testing.T) *writing {
	w := &writing{site: newSite(t), gate: &gate{}}
	w.turn.Gate = w.gate
	w.connection.Before = func(_ context.Context, r memapi.Request) error {
		w.mu.Lock()
		defer w.mu.Unlock()
		if r.Verb == "patch" && w.fails {
			return &apierrors.StatusError{
				ErrStatus: metav1.Status{Code: http.StatusInternalServerError, Message: "out of order"},
			}
		}
		return nil
	}
	w.handle(&handlers.Handler{ID: "c", Reason: cause.Create}, func(*handlers.Invocation) error {
		time.Sleep(w.slow)
		return nil
	})
	switch {
	case strings.HasSuffix(t.Name(), "/NoAttemptsAreWanted"):
		w.deps.Settings.ErrorDelays = nil
	case strings.HasSuffix(t.Name(), "/Gone"):
		w.handle(&handlers.Handler{ID: "d", Reason: cause.Delete}, succeeding)
	case strings.HasSuffix(t.Name(), "/Ticks"):
		w.handle(&handlers.Handler{
			ID: "t", Family: handlers.Spawning, Background: &handlers.Background{Interval: time.Hour},
		}, succeeding)
	case strings.HasSuffix(t.Name(), "/AnotherWaits"):
		w.handle(&handlers.Handler{
			ID: "l", Reason: cause.Create, Policy: handlers.Policy{Backoff: ptr.To(time.Hour)},
		}, func(*handlers.Invocation) error { return errors.New("not yet") })
	}
	w.stop = w.run()
	return w
}

func (w *writing) fail(fails bool) { w.change(func() { w.fails = fails }) }

// pause pauses the operator, and gives when that began; it returns when the pause has begun for others.
func (w *writing) pause(meanwhile func()) (began time.Time) {
	began = time.Now()
	w.gate.close()
	go meanwhile()
	w.stop(execution.ErrPaused)
	return began
}

// written tells whether the object says that it was handled.
func (w *writing) written(name string) bool {
	o := w.object("a", name)
	if err := w.people.Get(w.t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
		w.t.Error(errors.Join(errors.New("reading the object"), err))
	}
	return o.GetAnnotations()[prefix+"/last-handled-configuration"] != ""
}

// Of an object that is gone, nothing is left to be written: it does not count.
func TestGoneObjectsHoldNoGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, g := newSite(t), &gate{}
		s.turn.Gate = g
		s.handle(&handlers.Handler{ID: "c", Family: handlers.Changing, Reason: cause.Create}, succeeding)
		s.run()
		s.create("a", "x")
		s.want("it is handled", "c x")
		g.want(t, "afterwards", 0)
		s.remove("a", "x")
		g.want(t, "when it is gone", 0)
	})
	synctest.Test(t, func(t *testing.T) {
		s, g := newSite(t), &gate{}
		s.turn.Gate = g
		s.handle(&handlers.Handler{ID: "e", Family: handlers.Watching}, func(*handlers.Invocation) error {
			s.server.Discard(stored, "a", "x")
			time.Sleep(100 * time.Millisecond) // the cache knows
			return nil
		})
		s.handle(&handlers.Handler{ID: "c", Family: handlers.Changing, Reason: cause.Create}, succeeding)
		s.run()
		s.create("a", "x")
		s.want("it goes before its change is looked at", "e x", "e x")
		g.want(t, "when it is gone", 0)
	})
}
