package reconcilers_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/execution"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers"
)

// TestPausesAtAnyPoint shows that wherever the gate closes, nothing begins afterwards, and nothing is lost when it
// opens again: each change is handled once, in spite of retries and of outcomes written in the pause.
func TestPausesAtAnyPoint(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-all runs it")
	}
	const step, steps = 700 * time.Millisecond, 30
	for n := range steps {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := memapi.New()
				p, gate := newDirectClient(t, server), &reconcilers.Gate{}
				var succeeded [3]atomic.Int64
				slow := func(n int, id string, reason cause.Reason) reconcilers.Registration {
					return registrationFor(t, "configmaps", &handlers.Handler{ID: id, Reason: reason,
						Call: func(_ context.Context, call *handlers.Invocation) error {
							if !gate.Open() {
								t.Errorf("%s began after the gate was closed", id)
							}
							time.Sleep(1500 * time.Millisecond)
							if call.Retry == 0 {
								return &execution.PendingError{Delay: 2 * time.Second}
							}
							succeeded[n].Add(1)
							return nil
						}})
				}
				ticks := timer("t", 3*time.Second, func(context.Context, *handlers.Invocation) error {
					if !gate.Open() {
						t.Error("a tick began after the gate was closed")
					}
					time.Sleep(time.Second)
					return nil
				})
				stop := operateAll(t, server, reconcilers.Options{Gate: gate}, slow(0, "a", cause.Create),
					slow(1, "b", cause.Create), slow(2, "u", cause.Update), registrationFor(t, "configmaps", ticks))
				defer stop()
				time.Sleep(time.Second)
				p.create("ConfigMap", "c")
				edit := func() { p.merge("ConfigMap", "c", `{"data":{"a":"b"}}`) }
				early := time.Duration(n)*step > 12*time.Second
				if early { // otherwise, edit after the creation was handled
					time.AfterFunc(12*time.Second, edit)
				}
				time.Sleep(time.Duration(n)*step + 37*time.Millisecond) // not at the time of another event
				gate.Set(true)
				<-gate.Idle()
				version := p.get("ConfigMap", "c").GetResourceVersion()
				time.Sleep(time.Minute)
				if now := p.get("ConfigMap", "c").GetResourceVersion(); now != version {
					t.Errorf("an idle operator wrote to the object: version %s, then %s", version, now)
				}
				gate.Set(false)
				time.Sleep(time.Minute)
				if !early {
					edit()
				}
				time.Sleep(time.Minute)
				for n := range succeeded {
					if got := succeeded[n].Load(); got != 1 {
						t.Errorf("handler %d succeeded %d times, want once", n, got)
					}
				}
			})
		})
	}
}
