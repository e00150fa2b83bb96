package controller

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	"k8s.io/utils/ptr"

	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/source"
)

// TestStallsAreLogged shows that a stall is logged in one line with the number of waiting objects, and its end in
// another.
func TestStallsAreLogged(t *testing.T) {
	for name, c := range map[string]struct {
		stall source.Stall
		want  string
	}{
		"Changes":   {source.Stall{Waiting: 3}, `"waiting"=3 "what"="objects"`},
		"Deletions": {source.Stall{Waiting: 3, Deletions: true}, `"what"="objects that are being deleted"`},
		"Over":      {source.Stall{}, `any more" "apiVersion"="example.org/v1" "kind"="Widget" "waited"="objects"`},
		"OverToo":   {source.Stall{Deletions: true}, `"waited"="objects that are being deleted"`},
	} {
		var said []string
		deps := &Dependencies{Log: funcr.New(func(_, line string) { said = append(said, line) }, funcr.Options{})}
		newWorkers(deps, widgets).logStall(c.stall)
		if len(said) != 1 || !strings.Contains(said[0], c.want) {
			t.Errorf("%s: want %s: %q", name, c.want, said)
		}
	}
}

// TestStuckHandlers shows that a handler counts as stuck when it exceeds its timeout by the limit.
func TestStuckHandlers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := newCreateHandler("c")
		slow.Policy = handlers.Policy{Timeout: ptr.To(time.Minute)}
		slow.Call = func(context.Context, *handlers.Invocation) error {
			time.Sleep(time.Hour)
			return nil
		}
		w := newObjectFixture(t, slow)
		go w.pass()
		synctest.Wait()
		w.requireStuck(t, "within the timeout", 59*time.Second, 0)
		w.requireStuck(t, "shortly after the timeout", time.Minute, 0)
		w.requireStuck(t, "at the limit after the timeout", time.Second, 1)
		time.Sleep(2 * time.Hour)
		w.requireStuck(t, "after the end of the handler", 0, 0)
	})
}

// requireStuck sleeps, and then checks how many handlers have been stuck for a minute.
func (w *objectFixture) requireStuck(t *testing.T, when string, after time.Duration, n int) {
	t.Helper()
	time.Sleep(after)
	if got := w.controller.workers.stuckHandlers(time.Minute); len(got) != n {
		t.Errorf("%s: got the stuck handlers %q, want %d", when, got, n)
	}
}

// TestStuckObjects shows that waiting objects count as stuck if no worker becomes free.
func TestStuckObjects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := newCreateHandler("c")
		slow.Call = func(context.Context, *handlers.Invocation) error {
			time.Sleep(time.Hour)
			return nil
		}
		w := newObjectFixture(t, slow)
		w.controller.deps.Settings.Workers = 1
		w.controller.workers = newWorkers(w.controller.deps, widgets)
		w.controller.changes.Slot = w.controller.workers.occupation
		stop := w.startWorker(t)
		w.controller.queue.Load().Add(request)
		synctest.Wait()
		other := request
		other.Name = "b"
		w.controller.queue.Load().Add(other)
		w.requireStuck(t, "before the limit", 59*time.Second, 0)
		w.requireStuck(t, "at the limit", time.Second, 1)
		time.Sleep(2 * time.Hour)
		w.requireStuck(t, "with a free worker", 0, 0)
		stop()
	})
}
