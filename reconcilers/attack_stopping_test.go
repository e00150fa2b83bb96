package reconcilers_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-runtime/kopf-runtime/reconcilers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/cause"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/test/memapi"
)

func (p people) get(kind, name string) *unstructured.Unstructured {
	o := p.object(kind, name)
	if err := p.Get(context.Background(), types.NamespacedName{Namespace: "default", Name: name}, o); err != nil {
		return nil
	}
	return o
}

// An exit waits as long as an exit does, whatever the daemon was waited for before.
func TestExitWhileDeleting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := memapi.New()
		p := newPeople(t, server)
		p.create("ConfigMap", "c")
		release := make(chan struct{})
		stop := operate(t, server, "configmaps", daemon("d", handlers.Background{}, func(
			context.Context, *handlers.Call,
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

// A pause does not wait for ever for a tick that was asked to stop before.
func TestPauseWithUnmatchedTick(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := memapi.New()
		p := newPeople(t, server)
		p.create("ConfigMap", "c")
		gate := &reconcilers.Gate{}
		var created, cancelled atomic.Int64
		h := timer("t", time.Second, func(ctx context.Context, call *handlers.Call) error {
			select {
			case <-ctx.Done():
				cancelled.Add(1)
			case <-time.After(3 * time.Hour):
			}
			return nil
		})
		h.Filters = []handlers.Filter{func(_ context.Context, c *cause.Cause) (bool, error) {
			return (&unstructured.Unstructured{Object: c.Body}).GetLabels()["l"] != "out", nil
		}}
		stop := operateAll(t, server, reconcilers.Options{Gate: gate}, to(t, "configmaps", h),
			to(t, "secrets", counting("h", cause.Create, &created)))
		time.Sleep(5 * time.Second)
		p.label("ConfigMap", "c", "out")
		time.Sleep(5 * time.Second)
		gate.Set(true)
		time.Sleep(30 * time.Second)
		gate.Set(false)
		time.Sleep(time.Second)
		p.create("Secret", "s")
		time.Sleep(time.Hour)
		if created.Load() != 1 || cancelled.Load() != 1 {
			t.Errorf(
				"an hour after the pause: %d handled (want 1), tick cancelled %d", created.Load(), cancelled.Load(),
			)
		}
		time.Sleep(4 * time.Hour)
		stop()
	})
}

// An object may go between the look at it and the start of its daemon: that must not take a place for ever.
func TestDaemonOfGoneObject(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := memapi.New()
		p := newPeople(t, server)
		var began atomic.Int64
		stop := operateAll(t, server, reconcilers.Options{Daemons: 1},
			to(t, "configmaps", &handlers.Handler{ID: "e", Family: handlers.Watching, Call: func(
				context.Context, *handlers.Call,
			) error {
				time.Sleep(2 * time.Second)
				return nil
			}}),
			to(t, "configmaps", daemon("d", handlers.Background{},
				func(ctx context.Context, call *handlers.Call) error {
					began.Add(1)
					<-ctx.Done()
					return nil
				})))
		defer stop()
		time.Sleep(time.Second)
		p.create("ConfigMap", "a")
		time.Sleep(time.Second)
		p.remove("ConfigMap", "a")
		time.Sleep(time.Minute)
		p.create("ConfigMap", "b")
		time.Sleep(time.Hour)
		if began.Load() != 1 {
			t.Errorf(
				"the daemon of b was called %d times in an hour: that of the gone object a holds the only slot",
				began.Load(),
			)
		}
	})
}

// A daemon that was abandoned in a pause is followed by another one when it has ended.
func TestAbandonedInPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := memapi.New()
		p := newPeople(t, server)
		p.create("ConfigMap", "c")
		gate := &reconcilers.Gate{}
		var began atomic.Int64
		stop := operateAll(t, server, reconcilers.Options{Gate: gate}, to(t, "configmaps", daemon("d",
			handlers.Background{CancelTimeout: time.Second},
			func(ctx context.Context, _ *handlers.Call) error {
				began.Add(1)
				<-ctx.Done()
				time.Sleep(30 * time.Second)
				return nil
			})))
		time.Sleep(5 * time.Second)
		gate.Set(true)
		time.Sleep(10 * time.Second)
		gate.Set(false)
		time.Sleep(time.Hour)
		if began.Load() != 2 {
			t.Errorf("the daemon was called %d times, want 2", began.Load())
		}
		stop()
		time.Sleep(time.Minute)
	})
}

// A pause takes no finalizer away.
func TestFinalizerInPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := memapi.New()
		p := newPeople(t, server)
		o := p.object("ConfigMap", "c")
		o.SetFinalizers([]string{"coming.example.org/finalizer"})
		if err := p.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		gate := &reconcilers.Gate{}
		h := &handlers.Handler{
			ID: "u", Reason: cause.Update, Call: func(context.Context, *handlers.Call) error { return nil },
		}
		h.Filters = []handlers.Filter{func(
			context.Context, *cause.Cause,
		) (bool, error) {
			time.Sleep(2 * time.Second)
			return true, nil
		}}
		stop := operateAll(t, server, reconcilers.Options{Gate: gate}, to(t, "configmaps", h),
			to(t, "configmaps", daemon("d", handlers.Background{},
				func(ctx context.Context, call *handlers.Call) error {
					<-ctx.Done()
					return nil
				})))
		time.Sleep(time.Second)
		gate.Set(true)
		time.Sleep(time.Minute)
		if f := p.get("ConfigMap", "c").GetFinalizers(); len(f) != 1 {
			t.Errorf("finalizers: %v", f)
		}
		stop()
	})
}

// An exit waits no longer for daemons of objects that are gone than for others.
func TestExitAfterForget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := memapi.New()
		p := newPeople(t, server)
		p.create("ConfigMap", "c")
		stop := operate(t, server, "configmaps", timer("t", time.Minute,
			func(ctx context.Context, _ *handlers.Call) error {
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
			t.Errorf("exit took %s", took)
		}
		time.Sleep(time.Minute)
	})
}

// An operator that restarts during a deletion finishes it.
func TestRestartInDeletion(t *testing.T) {
	for _, how := range []string{"restart", "pause"} {
		t.Run(how, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := memapi.New()
				p := newPeople(t, server)
				var deletes, daemons atomic.Int64
				gate := &reconcilers.Gate{}
				start := func() func() {
					return operateAll(t, server, reconcilers.Options{Gate: gate},
						to(t, "configmaps", daemon("d", handlers.Background{
							CancelBackoff: 10 * time.Second, CancelTimeout: 10 * time.Second,
						}, func(ctx context.Context, call *handlers.Call) error {
							daemons.Add(1)
							<-ctx.Done()
							time.Sleep(time.Minute)
							return nil
						})),
						to(t, "configmaps", counting("del", cause.Delete, &deletes)))
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
					t.Errorf("%d objects, %d deletes, %d daemons", p.count("ConfigMap"), deletes.Load(), daemons.Load())
				}
				stop()
			})
		})
	}
}

// A timer that idles goes on by its object's last change when it is selected again.
func TestIdleTimerAfterUnmatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := memapi.New()
		p := newPeople(t, server)
		p.create("ConfigMap", "c")
		var ticks atomic.Int64
		h := timer("t", 0, func(ctx context.Context, call *handlers.Call) error {
			ticks.Add(1)
			time.Sleep(5 * time.Second)
			return nil
		})
		h.Background.Idle = 10 * time.Second
		stop := operateAll(t, server, reconcilers.Options{}, to(t, "configmaps", h))
		defer stop()
		time.Sleep(12 * time.Second) // in the tick
		p.label("ConfigMap", "c", "1")
		time.Sleep(time.Minute)
		if ticks.Load() != 2 {
			t.Errorf("%d ticks, want 2", ticks.Load())
		}
		p.label("ConfigMap", "c", "2")
		time.Sleep(time.Minute)
		if ticks.Load() != 3 {
			t.Errorf("%d ticks, want 3", ticks.Load())
		}
	})
}

// Ticks that wait for their turn do not hold up an exit.
func TestExitWithWaitingQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := memapi.New()
		p := newPeople(t, server)
		var ticks atomic.Int64
		for n := range 20 {
			p.create("ConfigMap", fmt.Sprint("c", n))
		}
		stop := operateAll(t, server, reconcilers.Options{Ticks: 2}, to(t, "configmaps", timer("t", time.Second,
			func(ctx context.Context, call *handlers.Call) error {
				ticks.Add(1)
				select {
				case <-ctx.Done():
				case <-time.After(time.Minute):
				}
				return nil
			})))
		time.Sleep(5 * time.Second)
		began := time.Now()
		stop()
		if took := time.Since(began); took > time.Second || ticks.Load() != 2 {
			t.Errorf("exit took %s; %d ticks", took, ticks.Load())
		}
	})
}
