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

// gate is a gate that counts entered objects.
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
		t.Errorf("%s: %d objects are inside, want %d", when, g.inside, inside)
	}
}

// TestGateAndWrites shows that unsaved results hold the gate, and how long a pause and an exit wait for them.
func TestGateAndWrites(t *testing.T) {
	tests := map[string]struct {
		reason string
		play   func(w *writing)
	}{
		"Closed": {
			"a closed gate lets no handler begin", func(w *writing) {
				w.gate.close()
				w.create("a", "x")
				w.want("while closed")
			},
		},
		"AtRest": {
			"an object whose results are written does not hold the gate", func(w *writing) {
				w.create("a", "x")
				w.want("while open", "c x")
				w.gate.want(w.t, "after the write", 0)
			},
		},
		"Unwritten": {
			"an object with unsaved results holds the gate", func(w *writing) {
				w.fail(true)
				w.create("a", "x")
				w.create("a", "y")
				w.want("both objects", "c x", "c y")
				w.gate.want(w.t, "with refused writes", 2)
				time.Sleep(time.Minute)
				w.gate.want(w.t, "after a minute of refused writes", 2)
				w.fail(false)
				time.Sleep(10 * time.Minute)
				w.gate.want(w.t, "after the writes", 0)
				w.want("no handler is repeated")
			},
		},
		"UnwrittenInAPause": {
			"unsaved results are retried quickly in a pause, and the pause waits for them", func(w *writing) {
				w.fail(true)
				w.create("a", "x")
				time.Sleep(5 * time.Minute)
				w.want("before the pause", "c x")
				began := w.pause(func() { time.Sleep(12 * time.Second); w.fail(false) })
				if took := time.Since(began); took < 12*time.Second || took > 20*time.Second {
					w.t.Errorf("the pause took %s", took)
				}
				if !w.written("x") {
					w.t.Error("the result was not written in the pause")
				}
				w.gate.want(w.t, "after the pause", 0)
				w.want("no handler runs in a pause")
			},
		},
		"NeverWritten": {
			"a pause gives up on unsaved results after its limit", func(w *writing) {
				w.fail(true)
				w.create("a", "x")
				began := w.pause(func() {})
				if took := time.Since(began); took != 30*time.Second {
					w.t.Errorf("the pause took %s, want 30s", took)
				}
				w.gate.want(w.t, "after the pause", 0)
			},
		},
		"UnwrittenAtTheExit": {
			"an exit does not wait for unsaved results, as the next process repeats the handler", func(w *writing) {
				w.fail(true)
				w.create("a", "x")
				began := time.Now()
				w.stop(nil)
				if took := time.Since(began); took > 2*time.Second {
					w.t.Errorf("the exit took %s", took)
				}
				w.gate.want(w.t, "after the exit", 0)
			},
		},
		"SlowAtTheExit": {
			"an exit does not wait for the results of a handler that ends meanwhile", func(w *writing) {
				w.slow = 2 * time.Second
				w.create("a", "x")
				w.fail(true)
				w.stop(nil)
				w.gate.want(w.t, "after the exit", 0)
			},
		},
		"Gone": {
			"a deleted object does not hold the gate", func(w *writing) {
				w.create("a", "x")
				w.create("a", "y")
				w.remove("a", "x")
				w.server.Discard(stored, "a", "y")
				time.Sleep(time.Minute)
				w.gate.want(w.t, "after both deletions", 0)
				w.want("all handlers ran", "c x", "c y", "d x")
			},
		},
		"Ticks": {
			"a timer does not hold the gate between two ticks", func(w *writing) {
				w.create("a", "x")
				time.Sleep(time.Hour)
				w.gate.want(w.t, "between two ticks", 0)
			},
		},
		"AnotherWaits": {
			"a pause does not wait for the next attempt of a handler", func(w *writing) {
				w.fail(true)
				w.create("a", "x")
				began := w.pause(func() { time.Sleep(5 * time.Second); w.fail(false) })
				if took := time.Since(began); took > 15*time.Second {
					w.t.Errorf("the pause took %s", took)
				}
			},
		},
		"NoAttemptsAreWanted": {
			"without error delays, unsaved results are not retried in a pause", func(w *writing) {
				w.fail(true)
				w.create("a", "x")
				began := w.pause(func() {})
				if took := time.Since(began); took > 0 {
					w.t.Errorf("the pause took %s, want no time", took)
				}
			},
		},
		"DuringTheHandler": {
			"results of a handler that ends during the pause are written", func(w *writing) {
				w.slow = 10 * time.Second
				w.create("a", "x")
				w.gate.want(w.t, "while the handler runs", 1)
				w.fail(true)
				began := w.pause(func() { time.Sleep(15 * time.Second); w.fail(false) })
				if took := time.Since(began); took < 15*time.Second || took > 25*time.Second || !w.written("x") {
					w.t.Errorf("the pause took %s, written: %v", took, w.written("x"))
				}
				w.gate.want(w.t, "after the pause", 0)
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

// writing is a site whose writes can fail.
type writing struct {
	*site
	gate  *gate
	stop  func(error)
	slow  time.Duration // the duration of the create handler
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
			ID: "t", Family: handlers.Spawning, Background: &handlers.BackgroundOptions{Interval: time.Hour},
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

// pause pauses the operator while meanwhile runs. It returns when the pause is complete, with the time when it began.
func (w *writing) pause(meanwhile func()) (began time.Time) {
	began = time.Now()
	w.gate.close()
	go meanwhile()
	w.stop(execution.ErrPaused)
	return began
}

// written reports whether the object has its last-handled configuration.
func (w *writing) written(name string) bool {
	o := w.object("a", name)
	if err := w.people.Get(w.t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
		w.t.Error(errors.Join(errors.New("reading the object"), err))
	}
	return o.GetAnnotations()[prefix+"/last-handled-configuration"] != ""
}

// TestGoneObjectsHoldNoGate shows that a deleted object does not hold the gate, as nothing is left to write.
func TestGoneObjectsHoldNoGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, g := newSite(t), &gate{}
		s.turn.Gate = g
		s.handle(&handlers.Handler{ID: "c", Family: handlers.Changing, Reason: cause.Create}, succeeding)
		s.run()
		s.create("a", "x")
		s.want("after the creation", "c x")
		g.want(t, "after the write", 0)
		s.remove("a", "x")
		g.want(t, "after the deletion", 0)
	})
	synctest.Test(t, func(t *testing.T) {
		s, g := newSite(t), &gate{}
		s.turn.Gate = g
		s.handle(&handlers.Handler{ID: "e", Family: handlers.Watching}, func(*handlers.Invocation) error {
			s.server.Discard(stored, "a", "x")
			time.Sleep(100 * time.Millisecond) // until the deletion reaches the cache
			return nil
		})
		s.handle(&handlers.Handler{ID: "c", Family: handlers.Changing, Reason: cause.Create}, succeeding)
		s.run()
		s.create("a", "x")
		s.want("the object is deleted by its event handler", "e x", "e x")
		g.want(t, "after the deletion", 0)
	})
}
