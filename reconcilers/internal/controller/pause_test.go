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
	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/execution"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
)

// gate is a gate that counts entered objects.
type gate struct {
	mu           sync.Mutex
	closed       bool
	enteredCount int
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
		g.enteredCount++
	}
	return !g.closed
}

func (g *gate) Leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.enteredCount--
}

func (g *gate) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
}

func (g *gate) requireEntered(t *testing.T, when string, inside int) {
	t.Helper()
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.enteredCount != inside {
		t.Errorf("%s: %d objects are inside, want %d", when, g.enteredCount, inside)
	}
}

// TestGateAndWrites shows that unsaved results hold the gate, and how long a pause and an exit wait for them.
func TestGateAndWrites(t *testing.T) {
	tests := map[string]struct {
		reason string
		play   func(w *pauseFixture)
	}{
		"Closed": {
			"a closed gate lets no handler begin", func(w *pauseFixture) {
				w.gate.close()
				w.create("a", "x")
				w.requireCalls("while closed")
			},
		},
		"AtRest": {
			"an object whose results are written does not hold the gate", func(w *pauseFixture) {
				w.create("a", "x")
				w.requireCalls("while open", "c x")
				w.gate.requireEntered(w.t, "after the write", 0)
			},
		},
		"Unwritten": {
			"an object with unsaved results holds the gate", func(w *pauseFixture) {
				w.setFailsWrites(true)
				w.create("a", "x")
				w.create("a", "y")
				w.requireCalls("both objects", "c x", "c y")
				w.gate.requireEntered(w.t, "with refused writes", 2)
				time.Sleep(time.Minute)
				w.gate.requireEntered(w.t, "after a minute of refused writes", 2)
				w.setFailsWrites(false)
				time.Sleep(10 * time.Minute)
				w.gate.requireEntered(w.t, "after the writes", 0)
				w.requireCalls("no handler is repeated")
			},
		},
		"UnwrittenInAPause": {
			"unsaved results are retried quickly in a pause, and the pause waits for them", func(w *pauseFixture) {
				w.setFailsWrites(true)
				w.create("a", "x")
				time.Sleep(5 * time.Minute)
				w.requireCalls("before the pause", "c x")
				began := w.pauseWhile(func() { time.Sleep(12 * time.Second); w.setFailsWrites(false) })
				if took := time.Since(began); took < 12*time.Second || took > 20*time.Second {
					w.t.Errorf("the pause took %s", took)
				}
				if !w.hasLastHandled("x") {
					w.t.Error("the result was not written in the pause")
				}
				w.gate.requireEntered(w.t, "after the pause", 0)
				w.requireCalls("no handler runs in a pause")
			},
		},
		"NeverWritten": {
			"a pause gives up on unsaved results after its limit", func(w *pauseFixture) {
				w.setFailsWrites(true)
				w.create("a", "x")
				began := w.pauseWhile(func() {})
				if took := time.Since(began); took != 30*time.Second {
					w.t.Errorf("the pause took %s, want 30s", took)
				}
				w.gate.requireEntered(w.t, "after the pause", 0)
			},
		},
		"UnwrittenAtTheExit": {
			"an exit does not wait for unsaved results, as the next process repeats the handler",
			func(w *pauseFixture) {
				w.setFailsWrites(true)
				w.create("a", "x")
				began := time.Now()
				w.stop(nil)
				if took := time.Since(began); took > 2*time.Second {
					w.t.Errorf("the exit took %s", took)
				}
				w.gate.requireEntered(w.t, "after the exit", 0)
			},
		},
		"SlowAtTheExit": {
			"an exit does not wait for the results of a handler that ends meanwhile", func(w *pauseFixture) {
				w.handlerDuration = 2 * time.Second
				w.create("a", "x")
				w.setFailsWrites(true)
				w.stop(nil)
				w.gate.requireEntered(w.t, "after the exit", 0)
			},
		},
		"Gone": {
			"a deleted object does not hold the gate", func(w *pauseFixture) {
				w.create("a", "x")
				w.create("a", "y")
				w.remove("a", "x")
				w.server.Discard(serverResource, "a", "y")
				time.Sleep(time.Minute)
				w.gate.requireEntered(w.t, "after both deletions", 0)
				w.requireCalls("all handlers ran", "c x", "c y", "d x")
			},
		},
		"Ticks": {
			"a timer does not hold the gate between two ticks", func(w *pauseFixture) {
				w.create("a", "x")
				time.Sleep(time.Hour)
				w.gate.requireEntered(w.t, "between two ticks", 0)
			},
		},
		"AnotherWaits": {
			"a pause does not wait for the next attempt of a handler", func(w *pauseFixture) {
				w.setFailsWrites(true)
				w.create("a", "x")
				began := w.pauseWhile(func() { time.Sleep(5 * time.Second); w.setFailsWrites(false) })
				if took := time.Since(began); took > 15*time.Second {
					w.t.Errorf("the pause took %s", took)
				}
			},
		},
		"NoAttemptsAreWanted": {
			"without error delays, unsaved results are not retried in a pause", func(w *pauseFixture) {
				w.setFailsWrites(true)
				w.create("a", "x")
				began := w.pauseWhile(func() {})
				if took := time.Since(began); took > 0 {
					w.t.Errorf("the pause took %s, want no time", took)
				}
			},
		},
		"DuringTheHandler": {
			"results of a handler that ends during the pause are written", func(w *pauseFixture) {
				w.handlerDuration = 10 * time.Second
				w.create("a", "x")
				w.gate.requireEntered(w.t, "while the handler runs", 1)
				w.setFailsWrites(true)
				began := w.pauseWhile(func() { time.Sleep(15 * time.Second); w.setFailsWrites(false) })
				if took := time.Since(began); took < 15*time.Second || took > 25*time.Second || !w.hasLastHandled("x") {
					w.t.Errorf("the pause took %s, written: %v", took, w.hasLastHandled("x"))
				}
				w.gate.requireEntered(w.t, "after the pause", 0)
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			defer explain(t, tc.reason)
			synctest.Test(t, func(t *testing.T) { tc.play(newPauseFixture(t)) })
		})
	}
}

// pauseFixture is a site whose writes can fail.
type pauseFixture struct {
	*kindFixture
	gate            *gate
	stop            func(error)
	handlerDuration time.Duration // the duration of the create handler
	failsWrites     bool
}

func newPauseFixture(t *testing.T) *pauseFixture {
	w := &pauseFixture{kindFixture: newKindFixture(t), gate: &gate{}}
	w.turn.Gate = w.gate
	w.connection.Before = func(_ context.Context, r memapi.Request) error {
		w.mu.Lock()
		defer w.mu.Unlock()
		if r.Verb == "patch" && w.failsWrites {
			return &apierrors.StatusError{
				ErrStatus: metav1.Status{Code: http.StatusInternalServerError, Message: "out of order"},
			}
		}
		return nil
	}
	w.addHandler(&handlers.Handler{ID: "c", Reason: cause.Create}, func(*handlers.Invocation) error {
		time.Sleep(w.handlerDuration)
		return nil
	})
	switch {
	case strings.HasSuffix(t.Name(), "/NoAttemptsAreWanted"):
		w.deps.Settings.ErrorDelays = nil
	case strings.HasSuffix(t.Name(), "/Gone"):
		w.addHandler(&handlers.Handler{ID: "d", Reason: cause.Delete}, succeed)
	case strings.HasSuffix(t.Name(), "/Ticks"):
		w.addHandler(&handlers.Handler{
			ID: "t", Family: handlers.Background, Background: &handlers.BackgroundOptions{Interval: time.Hour},
		}, succeed)
	case strings.HasSuffix(t.Name(), "/AnotherWaits"):
		w.addHandler(&handlers.Handler{
			ID: "l", Reason: cause.Create, Policy: handlers.Policy{Backoff: ptr.To(time.Hour)},
		}, func(*handlers.Invocation) error { return errors.New("not yet") })
	}
	w.stop = w.run()
	return w
}

func (w *pauseFixture) setFailsWrites(fails bool) { w.withLock(func() { w.failsWrites = fails }) }

// pauseWhile pauses the operator while meanwhile runs. It returns when the pause is complete, with the time when it
// began.
func (w *pauseFixture) pauseWhile(meanwhile func()) (began time.Time) {
	began = time.Now()
	w.gate.close()
	go meanwhile()
	w.stop(execution.ErrPaused)
	return began
}

// hasLastHandled reports whether the object has its last-handled configuration.
func (w *pauseFixture) hasLastHandled(name string) bool {
	o := w.object("a", name)
	if err := w.userClient.Get(w.t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
		w.t.Error(errors.Join(errors.New("reading the object"), err))
	}
	return o.GetAnnotations()[prefix+"/last-handled-configuration"] != ""
}

// TestGoneObjectsHoldNoGate shows that a deleted object does not hold the gate, as nothing is left to write.
func TestGoneObjectsHoldNoGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, g := newKindFixture(t), &gate{}
		s.turn.Gate = g
		s.addHandler(&handlers.Handler{ID: "c", Family: handlers.Changing, Reason: cause.Create}, succeed)
		s.run()
		s.create("a", "x")
		s.requireCalls("after the creation", "c x")
		g.requireEntered(t, "after the write", 0)
		s.remove("a", "x")
		g.requireEntered(t, "after the deletion", 0)
	})
	synctest.Test(t, func(t *testing.T) {
		s, g := newKindFixture(t), &gate{}
		s.turn.Gate = g
		s.addHandler(&handlers.Handler{ID: "e", Family: handlers.Watching}, func(*handlers.Invocation) error {
			s.server.Discard(serverResource, "a", "x")
			time.Sleep(100 * time.Millisecond) // until the deletion reaches the cache
			return nil
		})
		s.addHandler(&handlers.Handler{ID: "c", Family: handlers.Changing, Reason: cause.Create}, succeed)
		s.run()
		s.create("a", "x")
		s.requireCalls("the object is deleted by its event handler", "e x", "e x")
		g.requireEntered(t, "after the deletion", 0)
	})
}
