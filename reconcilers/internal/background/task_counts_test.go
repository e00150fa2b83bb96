package background_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/background"
)

// wantCensus compares the numbers of handlers by their present state.
func (w *harness) wantCensus(when string, want map[background.TaskGroup]int) {
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
		var w *harness
		stubborn := make(chan struct{})
		own := []*handlers.Handler{
			backgroundHandler(&w, handlers.BackgroundOptions{Daemon: true, CancelTimeout: time.Minute},
				func(context.Context, *handlers.Invocation) error { <-stubborn; return nil }),
			backgroundHandler(&w, handlers.BackgroundOptions{Interval: time.Hour}, succeed),
			backgroundHandler(&w, handlers.BackgroundOptions{
				Daemon: true, InitialDelay: func(map[string]any) (time.Duration, error) { return time.Hour, nil },
			}, succeed),
		}
		for i, id := range []string{"stubborn", "tick", "late"} {
			own[i].ID = id
		}
		w = newHarness(t, own...)
		w.wantCensus("before the first pass", map[background.TaskGroup]int{})
		w.runPass()
		w.wantCensus("while the handlers run", map[background.TaskGroup]int{
			{Handler: "stubborn", Daemon: true, State: background.TaskRunning}: 1,
			{Handler: "tick", State: background.TaskWaiting}:                   1,
			{Handler: "late", Daemon: true, State: background.TaskWaiting}:     1,
		})
		w.mu.Lock()
		w.body = nil
		w.mu.Unlock()
		time.Sleep(time.Hour)
		w.wantCensus("after the deletion, before Forget", map[background.TaskGroup]int{
			{Handler: "stubborn", Daemon: true, State: background.TaskRunning}: 1,
			{Handler: "tick", State: background.TaskWaiting}:                   1,
			{Handler: "late", Daemon: true, State: background.TaskWaiting}:     1,
		})
		w.ForgetObject("u")
		w.wantCensus("after Forget", map[background.TaskGroup]int{
			{Handler: "stubborn", Daemon: true, State: background.TaskStopping}: 1,
		})
		time.Sleep(time.Hour)
		w.wantCensus("after the daemon was abandoned", map[background.TaskGroup]int{
			{Handler: "stubborn", Daemon: true, State: background.TaskStopping}: 1,
		})
		close(stubborn)
		w.wantCensus("after the daemon has ended", map[background.TaskGroup]int{})
	})
}
