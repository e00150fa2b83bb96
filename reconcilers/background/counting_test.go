package background_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/background"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
)

// wantCensus compares the numbers of handlers by their present state.
func (w *world) wantCensus(when string, want map[background.Census]int) {
	w.t.Helper()
	synctest.Wait()
	if d := cmp.Diff(want, w.CountTasks()); d != "" {
		w.t.Errorf("%s: -want, +got:\n%s", when, d)
	}
}

// TestCensus shows that each handler is counted once, by its present state. The handlers of a gone object are still
// counted, and a handler that was stopped counts as stopping until it has ended.
func TestCensus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w *world
		stubborn := make(chan struct{})
		own := []*handlers.Handler{
			spawning(&w, handlers.BackgroundOptions{Daemon: true, CancelTimeout: time.Minute},
				func(context.Context, *handlers.Invocation) error { <-stubborn; return nil }),
			spawning(&w, handlers.BackgroundOptions{Interval: time.Hour}, succeed),
			spawning(&w, handlers.BackgroundOptions{
				Daemon: true, InitialDelay: func(map[string]any) (time.Duration, error) { return time.Hour, nil },
			}, succeed),
		}
		for i, id := range []string{"stubborn", "tick", "late"} {
			own[i].ID = id
		}
		w = newWorld(t, own...)
		w.wantCensus("before the first pass", map[background.Census]int{})
		w.runPass()
		w.wantCensus("while the handlers run", map[background.Census]int{
			{Handler: "stubborn", Daemon: true, Doing: background.Calling}: 1,
			{Handler: "tick", Doing: background.Resting}:                   1,
			{Handler: "late", Daemon: true, Doing: background.Resting}:     1,
		})
		w.mu.Lock()
		w.body = nil
		w.mu.Unlock()
		time.Sleep(time.Hour)
		w.wantCensus("after the deletion, before Forget", map[background.Census]int{
			{Handler: "stubborn", Daemon: true, Doing: background.Calling}: 1,
			{Handler: "tick", Doing: background.Resting}:                   1,
			{Handler: "late", Daemon: true, Doing: background.Resting}:     1,
		})
		w.ForgetObject("u")
		w.wantCensus("after Forget", map[background.Census]int{
			{Handler: "stubborn", Daemon: true, Doing: background.Stopping}: 1,
		})
		time.Sleep(time.Hour)
		w.wantCensus("after the daemon was abandoned", map[background.Census]int{
			{Handler: "stubborn", Daemon: true, Doing: background.Stopping}: 1,
		})
		close(stubborn)
		w.wantCensus("after the daemon has ended", map[background.Census]int{})
	})
}
