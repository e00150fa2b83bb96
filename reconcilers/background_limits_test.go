package reconcilers_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers"
	"github.com/kopf-runtime/kopf-runtime/test/growth"
)

// TestManyDaemons shows that a thousand daemons start, see an edit of their objects, end in time when the objects are
// deleted, and leave no goroutines.
func TestManyDaemons(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-all runs it")
	}
	const many = 1000
	onServer(t, func(t *testing.T, server *memapi.Server, p directClient) {
		var started, edited, ended atomic.Int64
		stop := operateAll(t, server, reconcilers.Options{}, registrationFor(t, "configmaps", daemon("d",
			handlers.BackgroundOptions{CancelBackoff: 2 * time.Second, CancelTimeout: 3 * time.Second},
			func(ctx context.Context, call *handlers.Invocation) error {
				started.Add(1)
				defer ended.Add(1)
				for {
					select {
					case <-call.LiveObject.Stopping():
						time.Sleep(time.Second) // as if cleaning up
						return nil
					case <-time.After(time.Minute):
					}
					object := unstructured.Unstructured{Object: liveBody(call)}
					if object.GetLabels()["l"] == "edited" {
						edited.Add(1)
					}
				}
			})))
		defer stop()
		time.Sleep(time.Second)
		synctest.Wait()
		before := growth.Goroutines()
		for n := range many {
			p.create("ConfigMap", fmt.Sprint("c", n))
		}
		time.Sleep(time.Second)
		synctest.Wait()
		running := growth.Goroutines()
		for n := range many {
			p.label("ConfigMap", fmt.Sprint("c", n), "edited")
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if started.Load() != many || edited.Load() != many || p.count("ConfigMap") != many {
			t.Errorf("%d daemons started and %d saw the edit, want %d", started.Load(), edited.Load(), many)
		}
		for n := range many {
			p.remove("ConfigMap", fmt.Sprint("c", n))
		}
		time.Sleep(500 * time.Millisecond)
		synctest.Wait()
		if held := p.count("ConfigMap"); held != many || ended.Load() != 0 {
			t.Errorf("%d objects wait for their daemons, want all; %d daemons have ended", held, ended.Load())
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if held := p.count("ConfigMap"); held != 0 || ended.Load() != many {
			t.Errorf("%d objects are left and %d daemons have ended, want 0 and all", held, ended.Load())
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		after := growth.Goroutines()
		t.Logf("goroutines: %d before, %d with %d daemons, %d after", before, running, many, after)
		if after > before+5 {
			t.Errorf("%d goroutines before, %d after, want at most 5 more", before, after)
		}
	})
}

// TestDaemonsAreBounded shows that daemons beyond the limit wait for a slot, and that a daemon stopped in the meantime
// is never called.
func TestDaemonsAreBounded(t *testing.T) {
	onServer(t, func(t *testing.T, server *memapi.Server, p directClient) {
		var mu sync.Mutex
		var began []string
		stop := operateAll(
			t,
			server,
			reconcilers.Options{Settings: reconcilers.Settings{Daemons: 2}},
			registrationFor(t, "configmaps", daemon("d",
				handlers.BackgroundOptions{}, func(ctx context.Context, call *handlers.Invocation) error {
					mu.Lock()
					began = append(began, (&unstructured.Unstructured{Object: liveBody(call)}).GetName())
					mu.Unlock()
					<-ctx.Done()
					return nil
				})),
		)
		defer stop()
		for _, name := range []string{"a", "b", "c", "d"} {
			time.Sleep(time.Second)
			p.create("ConfigMap", name)
		}
		time.Sleep(time.Second)
		p.remove("ConfigMap", "c") // its daemon waits for a slot, so the object is released at once
		time.Sleep(time.Second)
		if left := p.count("ConfigMap"); left != 3 {
			t.Errorf("%d objects are left: an object whose daemon never started must not wait for it", left)
		}
		p.remove("ConfigMap", "a")
		time.Sleep(time.Second)
		mu.Lock()
		defer mu.Unlock()
		if d := cmp.Diff("a b d", strings.Join(began, " ")); d != "" {
			t.Errorf("-want, +got:\n%s", d)
		}
	})
}

// TestDeletionsAmongTicks shows that long ticks do not delay changes, because ticks have their own goroutines and their
// own limit.
func TestDeletionsAmongTicks(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-all runs it")
	}
	onServer(t, func(t *testing.T, server *memapi.Server, p directClient) {
		var mu sync.Mutex
		var running, most, ticks int
		var deleted time.Time
		stop := operateAll(t, server, reconcilers.Options{Settings: reconcilers.Settings{Workers: 1, Ticks: 5000}},
			registrationFor(t, "configmaps", timer("t", 5*time.Second,
				func(ctx context.Context, _ *handlers.Invocation) error {
					mu.Lock()
					running, ticks = running+1, ticks+1
					most = max(most, running)
					mu.Unlock()
					time.Sleep(3 * time.Second)
					mu.Lock()
					running--
					mu.Unlock()
					return nil
				})),
			registrationFor(t, "configmaps", &handlers.Handler{ID: "d", Reason: cause.Delete,
				Call: func(context.Context, *handlers.Invocation) error {
					mu.Lock()
					deleted = time.Now()
					mu.Unlock()
					return nil
				}}))
		defer stop()
		time.Sleep(time.Second)
		latency := func(name string) time.Duration {
			began := time.Now()
			p.remove("ConfigMap", name)
			time.Sleep(20 * time.Second)
			mu.Lock()
			defer mu.Unlock()
			return deleted.Sub(began)
		}
		p.create("ConfigMap", "alone")
		time.Sleep(4 * time.Second) // until the tick has ended
		alone := latency("alone")
		for n := range 2000 {
			p.create("ConfigMap", fmt.Sprint("c", n))
		}
		time.Sleep(4 * time.Second)
		p.create("ConfigMap", "late") // its ticks fall between those of the others, which begin every 8 seconds
		time.Sleep(36 * time.Second)
		mu.Lock()
		before, at := ticks, time.Now()
		mu.Unlock()
		time.Sleep(9 * time.Second) // in the middle of a tick of the others
		among := latency("late")
		mu.Lock()
		defer mu.Unlock()
		t.Logf(
			"alone after %s, among 2000 timers after %s; %d ticks in %s, %d at once", alone, among, ticks-before,
			time.Since(at), most,
		)
		if most < 1999 || among > alone+100*time.Millisecond {
			t.Errorf("a deletion is handled after %s alone, and among %d ticks after %s, want no delay", alone, most,
				among)
		}
	})
}
