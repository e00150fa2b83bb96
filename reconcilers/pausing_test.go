package reconcilers_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers"
)

// TestPauseBeforeListed shows that a listing that was interrupted by a pause does not count.
func TestPauseBeforeListed(t *testing.T) {
	onServer(t, func(t *testing.T, server *memapi.Server, p directClient) {
		p.create("ConfigMap", "c")
		p.create("Secret", "s")
		index, filling := byName()
		var found atomic.Int64
		found.Store(-1)
		gate := &reconcilers.Gate{}
		stop := operateAll(t, delayLists(server, "secrets", steady(20*time.Second)),
			reconcilers.Options{Gate: gate}, registrationFor(t, "secrets", filling),
			registrationFor(t, "configmaps", &handlers.Handler{ID: "h", Reason: cause.Create,
				Call: func(context.Context, *handlers.Invocation) error {
					found.Store(int64(index.Len()))
					return nil
				}}))
		defer stop()
		time.Sleep(time.Second)
		gate.Set(true)
		time.Sleep(time.Second)
		gate.Set(false)
		time.Sleep(time.Hour)
		if found.Load() != 1 {
			t.Errorf("the handler found %d of 1 secrets in the index", found.Load())
		}
	})
}

// TestTwoPauses shows that two pauses in a row lose no state: no living object is forgotten, no finished daemon starts
// again, and the indices stay filled.
func TestTwoPauses(t *testing.T) {
	onServer(t, func(t *testing.T, server *memapi.Server, p directClient) {
		p.create("ConfigMap", "c")
		index, filling := byName()
		gate := &reconcilers.Gate{}
		lag := &atomic.Int64{}
		var forgot, running, most, once atomic.Int64
		stop := operateAll(t, delayLists(server, "configmaps",
			func() time.Duration { return time.Duration(lag.Load()) }),
			reconcilers.Options{Gate: gate, OnGone: func(types.UID) { forgot.Add(1) }},
			registrationFor(t, "configmaps", filling),
			registrationFor(t, "configmaps", daemon("once", handlers.BackgroundOptions{}, func(
				ctx context.Context, _ *handlers.Invocation,
			) error {
				once.Add(1)
				return nil
			})),
			registrationFor(t, "configmaps", daemon("d", handlers.BackgroundOptions{CancelTimeout: time.Second},
				func(ctx context.Context, _ *handlers.Invocation) error {
					if n := running.Add(1); n > most.Load() {
						most.Store(n)
					}
					defer running.Add(-1)
					<-ctx.Done()
					time.Sleep(10 * time.Minute)
					return nil
				})))
		time.Sleep(5 * time.Second)
		gate.Set(true)
		time.Sleep(10 * time.Second)
		lag.Store(int64(20 * time.Second))
		gate.Set(false)
		time.Sleep(5 * time.Second)
		gate.Set(true)
		time.Sleep(5 * time.Second)
		entries := index.Len()
		lag.Store(0)
		gate.Set(false)
		time.Sleep(time.Minute)
		if most.Load() != 1 || forgot.Load() != 0 || once.Load() != 1 || entries != 1 {
			t.Errorf(
				"%d instances at once; %d living objects forgotten; a finished daemon called %d times; %d of 1 "+
					"entries in the pause",
				most.Load(), forgot.Load(), once.Load(), entries,
			)
		}
		stop()
		time.Sleep(20 * time.Minute)
	})
}

// TestPauseWithUnmatchedTick shows that a pause does not wait forever for a tick that was stopped before.
func TestPauseWithUnmatchedTick(t *testing.T) {
	onServer(t, func(t *testing.T, server *memapi.Server, p directClient) {
		p.create("ConfigMap", "c")
		gate := &reconcilers.Gate{}
		var created, cancelled atomic.Int64
		h := timer("t", time.Second, func(ctx context.Context, call *handlers.Invocation) error {
			select {
			case <-ctx.Done():
				cancelled.Add(1)
			case <-time.After(3 * time.Hour):
			}
			return nil
		})
		h.Filters = []handlers.Filter{func(_ context.Context, c *cause.Cause) (bool, error) {
			return (&unstructured.Unstructured{Object: c.Body()}).GetLabels()["l"] != "out", nil
		}}
		stop := operateAll(t, server, reconcilers.Options{Gate: gate}, registrationFor(t, "configmaps", h),
			registrationFor(t, "secrets", counting("h", cause.Create, &created)))
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

// TestAbandonedInPause shows that a daemon abandoned in a pause is called again after it has ended.
func TestAbandonedInPause(t *testing.T) {
	onServer(t, func(t *testing.T, server *memapi.Server, p directClient) {
		p.create("ConfigMap", "c")
		gate := &reconcilers.Gate{}
		var began atomic.Int64
		stop := operateAll(t, server, reconcilers.Options{Gate: gate}, registrationFor(t, "configmaps", daemon("d",
			handlers.BackgroundOptions{CancelTimeout: time.Second},
			func(ctx context.Context, _ *handlers.Invocation) error {
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

// TestFinalizerInPause shows that a pause removes no finalizer.
func TestFinalizerInPause(t *testing.T) {
	onServer(t, func(t *testing.T, server *memapi.Server, p directClient) {
		o := p.object("ConfigMap", "c")
		o.SetFinalizers([]string{"coming.example.org/finalizer"})
		if err := p.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		gate := &reconcilers.Gate{}
		h := &handlers.Handler{
			ID: "u", Reason: cause.Update, Call: func(context.Context, *handlers.Invocation) error { return nil },
		}
		h.Filters = []handlers.Filter{func(
			context.Context, *cause.Cause,
		) (bool, error) {
			time.Sleep(2 * time.Second)
			return true, nil
		}}
		stop := operateAll(t, server, reconcilers.Options{Gate: gate}, registrationFor(t, "configmaps", h),
			registrationFor(t, "configmaps", daemon("d", handlers.BackgroundOptions{},
				func(ctx context.Context, call *handlers.Invocation) error {
					<-ctx.Done()
					return nil
				})))
		time.Sleep(time.Second)
		gate.Set(true)
		time.Sleep(time.Minute)
		if f := p.get("ConfigMap", "c").GetFinalizers(); len(f) != 1 {
			t.Errorf("finalizers: %v, want one", f)
		}
		stop()
	})
}
