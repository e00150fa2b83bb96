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
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers"
)

// TestExitWaitsForDaemons shows that an exit waits for daemons until they end or their time is over (deviation
// D-exit-waits).
func TestExitWaitsForDaemons(t *testing.T) {
	stubborn := func(lingers time.Duration) handlers.Func {
		return func(ctx context.Context, _ *handlers.Invocation) error { <-ctx.Done(); time.Sleep(lingers); return nil }
	}
	tests := map[string]struct {
		reason     string
		background handlers.BackgroundOptions
		call       handlers.Func
		want       time.Duration
	}{
		"AtTheFirstWord": {"a daemon that ends after the stop signal is not waited for",
			handlers.BackgroundOptions{CancelBackoff: time.Minute}, func(
				_ context.Context, c *handlers.Invocation,
			) error {
				<-c.LiveObject.Stopping()
				return nil
			}, 0},
		"Cancelled": {
			"a daemon is cancelled after its backoff and waited for",
			handlers.BackgroundOptions{CancelBackoff: 4 * time.Second, CancelTimeout: 10 * time.Second},
			stubborn(2 * time.Second), 6 * time.Second,
		},
		"Abandoned": {
			"an exit waits up to the timeout of the daemon",
			handlers.BackgroundOptions{CancelBackoff: time.Second, CancelTimeout: 3 * time.Second},
			stubborn(time.Minute),
			4 * time.Second,
		},
		"NoTimeout": {
			"a daemon without a timeout has five seconds", handlers.BackgroundOptions{}, stubborn(time.Minute),
			5 * time.Second,
		},
		"Waiting": {
			"a daemon that waits for its first call is not called",
			handlers.BackgroundOptions{InitialDelay: func(map[string]any) (time.Duration, error) {
				return time.Hour,
					nil
			}},
			stubborn(time.Minute), 0,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := memapi.New()
				newDirectClient(t, server).create("ConfigMap", "c")
				stop := operate(t, server, "configmaps", daemon("d", tc.background, tc.call))
				time.Sleep(5 * time.Second)
				began := time.Now()
				stop()
				if took := time.Since(began); took < tc.want || took > tc.want+200*time.Millisecond {
					t.Errorf("%s: the exit took %s, want %s", tc.reason, took, tc.want)
				}
				time.Sleep(2 * time.Minute) // until abandoned daemons end, too
			})
		})
	}
}

// TestExitWhileDeleting shows that an exit waits up to five seconds for a daemon, even if a deletion already waits for
// that daemon.
func TestExitWhileDeleting(t *testing.T) {
	onServer(t, func(t *testing.T, server *memapi.Server, p directClient) {
		p.create("ConfigMap", "c")
		release := make(chan struct{})
		stop := operate(t, server, "configmaps", daemon("d", handlers.BackgroundOptions{}, func(
			context.Context, *handlers.Invocation,
		) error {
			<-release
			return nil
		}))
		time.Sleep(5 * time.Second)
		p.remove("ConfigMap", "c")
		time.Sleep(5 * time.Second)
		began := time.Now()
		go func() { time.Sleep(20 * time.Second); close(release) }()
		stop()
		if took := time.Since(began); took > 6*time.Second {
			t.Errorf("exit took %s, want 5s", took)
		}
		time.Sleep(time.Minute)
	})
}

// TestExitAfterForget shows that an exit waits for the daemons of gone objects as long as for others.
func TestExitAfterForget(t *testing.T) {
	onServer(t, func(t *testing.T, server *memapi.Server, p directClient) {
		p.create("ConfigMap", "c")
		stop := operate(t, server, "configmaps", timer("t", time.Minute,
			func(ctx context.Context, _ *handlers.Invocation) error {
				select {
				case <-ctx.Done():
				case <-time.After(25 * time.Second):
				}
				return nil
			}))
		time.Sleep(5 * time.Second)
		o := p.get("ConfigMap", "c")
		o.SetFinalizers(nil)
		if err := p.Update(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		p.remove("ConfigMap", "c")
		time.Sleep(time.Second)
		began := time.Now()
		stop()
		if took := time.Since(began); took > 6*time.Second {
			t.Errorf("the exit took %s, want at most 6s", took)
		}
		time.Sleep(time.Minute)
	})
}

// TestExitWithWaitingQueue shows that ticks that wait for a slot do not delay an exit.
func TestExitWithWaitingQueue(t *testing.T) {
	onServer(t, func(t *testing.T, server *memapi.Server, p directClient) {
		var ticks atomic.Int64
		for n := range 20 {
			p.create("ConfigMap", fmt.Sprint("c", n))
		}
		stop := operateAll(
			t,
			server,
			reconcilers.Options{Settings: reconcilers.Settings{Ticks: 2}},
			registrationFor(t, "configmaps", timer("t", time.Second,
				func(ctx context.Context, call *handlers.Invocation) error {
					ticks.Add(1)
					select {
					case <-ctx.Done():
					case <-time.After(time.Minute):
					}
					return nil
				})),
		)
		time.Sleep(5 * time.Second)
		began := time.Now()
		stop()
		if took := time.Since(began); took > time.Second || ticks.Load() != 2 {
			t.Errorf("the exit took %s with %d ticks, want at most 1s with 2", took, ticks.Load())
		}
	})
}

// TestRestartInDeletion shows that an operator that restarts or pauses during a deletion finishes it.
func TestRestartInDeletion(t *testing.T) {
	for _, how := range []string{"restart", "pause"} {
		t.Run(how, func(t *testing.T) {
			onServer(t, func(t *testing.T, server *memapi.Server, p directClient) {
				var deletes, daemons atomic.Int64
				gate := &reconcilers.Gate{}
				start := func() func() {
					return operateAll(t, server, reconcilers.Options{Gate: gate},
						registrationFor(t, "configmaps", daemon("d", handlers.BackgroundOptions{
							CancelBackoff: 10 * time.Second, CancelTimeout: 10 * time.Second,
						}, func(ctx context.Context, call *handlers.Invocation) error {
							daemons.Add(1)
							<-ctx.Done()
							time.Sleep(time.Minute)
							return nil
						})),
						registrationFor(t, "configmaps", counting("del", cause.Delete, &deletes)))
				}
				stop := start()
				p.create("ConfigMap", "c")
				time.Sleep(5 * time.Second)
				p.remove("ConfigMap", "c")
				time.Sleep(5 * time.Second)
				if how == "pause" {
					gate.Set(true)
					time.Sleep(time.Minute)
					gate.Set(false)
				} else {
					stop()
					stop = start()
				}
				time.Sleep(2 * time.Minute)
				if p.count("ConfigMap") != 0 || deletes.Load() != 1 || daemons.Load() != 1 {
					t.Errorf("%d objects, %d deletions, %d daemons, want 0, 1 and 1", p.count("ConfigMap"),
						deletes.Load(), daemons.Load())
				}
				stop()
			})
		})
	}
}
