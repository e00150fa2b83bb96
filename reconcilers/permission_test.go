package reconcilers_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/execution"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers"
)

// endRecorder records when the contexts of handlers end.
type endRecorder struct {
	t         *testing.T
	startTime time.Time

	mu      sync.Mutex
	records []string
}

func (e *endRecorder) call(ctx context.Context, call *handlers.Invocation) error {
	<-ctx.Done()
	if !errors.Is(context.Cause(ctx), execution.ErrPaused) {
		return nil // the operator exits
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.records = append(e.records, fmt.Sprintf("%s after %s", call.Handler.ID, time.Since(e.startTime)))
	return ctx.Err()
}

// TestHandlersWithoutPermission shows that without the permission to write, handlers end at once instead of after the
// timeouts of a pause, because another operator may call its own handlers. This is also true if the permission ends
// during a pause.
func TestHandlersWithoutPermission(t *testing.T) {
	for name, pauses := range map[string]bool{"while it acts": false, "in a pause": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := memapi.New()
				newDirectClient(t, server).create("ConfigMap", "c")
				e, gate := &endRecorder{t: t, startTime: time.Now()}, &reconcilers.Gate{}
				gate.AllowWritesUntil(e.startTime.Add(10 * time.Second))
				stop := operateAll(
					t,
					server,
					reconcilers.Options{Settings: reconcilers.Settings{PauseTimeout: time.Hour}, Gate: gate},
					registrationFor(t, "configmaps", &handlers.Handler{ID: "h", Reason: cause.Create, Call: e.call}),
					registrationFor(t, "configmaps",
						daemon("d", handlers.BackgroundOptions{CancelBackoff: time.Hour}, e.call)),
					registrationFor(t, "configmaps", timer("t", time.Minute, e.call)),
				)
				defer stop()
				time.Sleep(8 * time.Second)
				if gate.Busy() != 3 {
					t.Fatalf("%d of 3 are busy", gate.Busy())
				}
				gate.Set(pauses)
				time.Sleep(2*time.Second + time.Millisecond)
				e.mu.Lock()
				defer e.mu.Unlock()
				for _, id := range []string{"h", "d", "t"} {
					e.want(id + " after 10s")
				}
				if len(e.records) != 3 || gate.Busy() != 0 {
					t.Errorf("%d are busy; ended: %q; want three ended handlers", gate.Busy(), e.records)
				}
			})
		})
	}
}

func (e *endRecorder) want(ending string) {
	e.t.Helper()
	for _, one := range e.records {
		if one == ending {
			return
		}
	}
	e.t.Errorf("want %s; got %q", ending, e.records)
}

// TestPermissionAgain shows that a process that was suspended and gets a new permission before it noticed the end of
// the last one still ends its attempts. Until they have ended, nothing is written.
func TestPermissionAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := &reconcilers.Gate{}
		gate.AllowWritesUntil(time.Now().Add(time.Second))
		permission, entered, enteredAgain := gate.WritePermission(), gate.Enter(), gate.Enter()
		time.Sleep(time.Second) // no other goroutine has run since
		gate.AllowWritesUntil(time.Now().Add(time.Hour))
		if !entered || !enteredAgain || permission.Err() == nil || gate.Open() || gate.Enter() {
			t.Errorf("the former attempts must end: open %t", gate.Open())
		}
		if gate.WritePermission().Err() == nil {
			t.Error("a new attempt must not be permitted to write")
		}
		gate.Leave()
		if gate.Open() || gate.Enter() || gate.WritePermission().Err() == nil {
			t.Error("while one of two former attempts is left, there must be no permission")
		}
		gate.Leave()
		if !gate.Open() || gate.WritePermission().Err() != nil {
			t.Error("after the last attempt has ended, there must be permission")
		}
	})
}
