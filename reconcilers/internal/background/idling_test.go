package background_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/background"
)

// TestIdling shows when timers with an idle time are called, and the start of the current run: as in Kopf, changes are
// noticed in steps of the idle time, and the run starts at the step that noticed the change.
func TestIdling(t *testing.T) {
	idle, both := handlers.BackgroundOptions{Idle: 10 * second},
		handlers.BackgroundOptions{Idle: 25 * second, Interval: 10 * second}
	for name, tc := range map[string]struct {
		reason     string
		background handlers.BackgroundOptions
		takes      time.Duration
		changes    []time.Duration
		want       []string
	}{
		"Unchanged": {"without changes, there is one call, after the idle time", idle, 0, nil,
			[]string{"10s since 0s"}},
		"Changed": {
			"each change is followed by a call", idle, 0, []time.Duration{13 * second, 35 * second},
			[]string{"10s since 0s", "23s since 20s", "45s since 43s"},
		},
		"OnStep": {
			"a change at a step is noticed at once", idle, 0, []time.Duration{20 * second},
			[]string{"10s since 0s", "30s since 20s"},
		},
		"Late": {
			"the steps count from the end of the last call", idle, 0, []time.Duration{47 * second},
			[]string{"10s since 0s", "57s since 50s"},
		},
		"Often": {
			"the idle time counts from the last change", idle, 0,
			[]time.Duration{13 * second, 16 * second, 24 * second},
			[]string{"10s since 0s", "34s since 20s"},
		},
		"Before": {
			"changes before the first call postpone it", idle, 0, []time.Duration{4 * second, 12 * second},
			[]string{"22s since 0s"},
		},
		"Meanwhile": {
			"a change during a call is followed by another call", idle, 4 * second,
			[]time.Duration{12 * second}, []string{"10s since 0s", "22s since 14s"},
		},
		"LongAgo": {
			"an idle time that is over at the end of a call causes another one at once", idle, 14 * second,
			[]time.Duration{12 * second},
			[]string{"10s since 0s", "24s since 24s"},
		},
		"Interval": {
			"the interval repeats the call while the object is idle", both, 0, []time.Duration{40 * second},
			[]string{"25s since 0s", "35s since 35s", "1m5s since 45s"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var w *harness
				w = newHarness(t, idleTimer(&w, tc.background, tc.takes))
				w.runPass()
				for i, at := range tc.changes {
					w.until(at)
					w.change(i)
					w.runPass() // a second pass, without a change
				}
				w.want(70*second-time.Since(w.startTime), tc.want...)
			})
		})
	}
}

// idleTimer returns a handler that records the start of its current run.
func idleTimer(w **harness, b handlers.BackgroundOptions, takes time.Duration) *handlers.Handler {
	return &handlers.Handler{
		ID: "h", Family: handlers.Background, Background: &b,
		Call: func(_ context.Context, call *handlers.Invocation) error {
			(*w).note(fmt.Sprint("since ", call.Started.Sub((*w).startTime)))
			time.Sleep(takes)
			return nil
		},
	}
}

// change gives the object another essence, and supervises it.
func (w *harness) change(to int) {
	w.mu.Lock()
	w.body = map[string]any{"metadata": w.body["metadata"], "spec": map[string]any{"changed": to}}
	w.mu.Unlock()
	w.runPass()
}

// TestIdlingUnmatched shows that the idle time also counts while the handler does not match.
func TestIdlingUnmatched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStoppableHarness(t, background.KindSettings{}, handlers.BackgroundOptions{Idle: 10 * second},
			succeed)
		s.runPass()
		s.until(20 * second)
		s.stop(background.Unmatched)
		s.until(25 * second)
		s.filterErr = nil
		s.runPass()
		s.want(second, "10s call 0", "20s look", "25s call 0")
	})
}

// TestNothingIdles shows that nothing is kept of an object without matching handlers, so there is nothing to forget.
func TestNothingIdles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s *stoppableHarness
		s = newStoppableHarness(t, background.KindSettings{
			OnForgotten: func(types.NamespacedName, types.UID) { s.note("forgotten") },
		}, handlers.BackgroundOptions{Idle: 10 * second}, succeed)
		s.filterErr = errUnmatched
		if s.runPass() {
			t.Error("an object without matching handlers must not be held")
		}
		s.forget()
		s.want(minute)
	})
}

// TestNeedlessRequests shows that requests of the queue that are too early, too late, or for unknown objects and
// handlers do not cause ticks. The queue can neither drop nor postpone its requests.
func TestNeedlessRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w *harness
		slow := func(context.Context, *handlers.Invocation) error { time.Sleep(5 * second); return nil }
		w = newHarness(t, backgroundHandler(&w, handlers.BackgroundOptions{Interval: 10 * second}, slow))
		w.FireTimer("u", "h")
		w.runPass()
		synctest.Wait()
		for range 20 {
			w.FireTimer("u", "h")
			w.FireTimer("u", "unknown")
			w.FireTimer("unknown", "h")
			time.Sleep(second)
		}
		w.want(19*second, "0s call 0", "15s call 0", "30s call 0")
	})
}
