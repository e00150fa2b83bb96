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
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-runtime/kopf-runtime/reconcilers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/cause"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/test/growth"
	"github.com/kopf-runtime/kopf-runtime/test/memapi"
)

// people are those who make, change and delete objects.
type people struct {
	client.Client
	t *testing.T
}

func (p people) object(kind, name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{
		Object: map[string]any{
			"apiVersion": "v1", "kind": kind, "metadata": map[string]any{"name": name, "namespace": "default"},
		},
	}
}

func (p people) create(kind, name string) {
	p.t.Helper()
	if err := p.Create(context.Background(), p.object(kind, name)); err != nil {
		p.t.Fatal(err)
	}
}

func (p people) label(kind, name, value string) {
	p.t.Helper()
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"l":"`+value+`"}}}`))
	if err := p.Patch(context.Background(), p.object(kind, name), patch); err != nil {
		p.t.Fatal(err)
	}
}

func (p people) remove(kind, name string) {
	p.t.Helper()
	if err := p.Delete(context.Background(), p.object(kind, name)); err != nil {
		p.t.Fatal(err)
	}
}

func (p people) count(kind string) int {
	p.t.Helper()
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion("v1")
	list.SetKind(kind + "List")
	if err := p.List(context.Background(), list); err != nil {
		p.t.Fatal(err)
	}
	return len(list.Items)
}

func newPeople(t *testing.T, server *memapi.Server) people {
	t.Helper()
	direct, err := client.New(memapi.Config(server), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return people{direct, t}
}

func daemon(id string, b handlers.Background, call handlers.Func) *handlers.Handler {
	b.Daemon = true
	return &handlers.Handler{ID: id, Family: handlers.Spawning, Background: &b, Call: call}
}

// counting is a handler of changes that does nothing else.
func counting(id string, reason cause.Reason, calls *atomic.Int64) *handlers.Handler {
	return &handlers.Handler{ID: id, Reason: reason, Call: func(context.Context, *handlers.Call) error {
		calls.Add(1)
		return nil
	}}
}

func timer(id string, interval time.Duration, call handlers.Func) *handlers.Handler {
	return &handlers.Handler{
		ID: id, Family: handlers.Spawning, Background: &handlers.Background{Interval: interval}, Call: call,
	}
}

// A thousand daemons start, see an edit of their object, and end within their time when the objects are deleted;
// nothing of them stays.
func TestManyDaemons(t *testing.T) {
	const many = 1000
	synctest.Test(t, func(t *testing.T) {
		server := memapi.New()
		p := newPeople(t, server)
		var started, edited, ended atomic.Int64
		stop := operateAll(t, server, reconcilers.Options{}, to(t, "configmaps", daemon("d",
			handlers.Background{CancelBackoff: 2 * time.Second, CancelTimeout: 3 * time.Second},
			func(ctx context.Context, call *handlers.Call) error {
				started.Add(1)
				defer ended.Add(1)
				for {
					select {
					case <-call.Live.Stopping():
						time.Sleep(time.Second) // puts things in order
						return nil
					case <-time.After(time.Minute):
					}
					object := unstructured.Unstructured{Object: call.Live.Object()}
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
			t.Errorf("%d were started, %d saw the edit, of %d", started.Load(), edited.Load(), many)
		}
		for n := range many {
			p.remove("ConfigMap", fmt.Sprint("c", n))
		}
		time.Sleep(500 * time.Millisecond)
		synctest.Wait()
		if held := p.count("ConfigMap"); held != many || ended.Load() != 0 {
			t.Errorf("%d objects wait for their daemons, want all; %d have ended", held, ended.Load())
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if held := p.count("ConfigMap"); held != 0 || ended.Load() != many {
			t.Errorf("%d objects are left; %d daemons have ended", held, ended.Load())
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		after := growth.Goroutines()
		t.Logf("goroutines: %d before, %d with %d daemons, %d after", before, running, many, after)
		if after > before+5 {
			t.Errorf("%d goroutines before, %d after", before, after)
		}
	})
}

// Ticks that take long do not keep changes from being handled: they have goroutines, and a limit, of their own.
func TestDeletionsAmongTicks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := memapi.New()
		p := newPeople(t, server)
		var mu sync.Mutex
		var running, most, ticks int
		var deleted time.Time
		stop := operateAll(t, server, reconcilers.Options{Workers: 1, Ticks: 5000},
			to(t, "configmaps", timer("t", 5*time.Second, func(ctx context.Context, _ *handlers.Call) error {
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
			to(t, "configmaps", &handlers.Handler{ID: "d", Reason: cause.Delete,
				Call: func(context.Context, *handlers.Call) error {
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
		time.Sleep(4 * time.Second) // the tick is over
		alone := latency("alone")
		for n := range 2000 {
			p.create("ConfigMap", fmt.Sprint("c", n))
		}
		time.Sleep(40 * time.Second)
		mu.Lock()
		before, at := ticks, time.Now()
		mu.Unlock()
		time.Sleep(8 * time.Second) // they all beat together: this is in the middle of a tick
		among := latency("c7")
		mu.Lock()
		defer mu.Unlock()
		t.Logf(
			"alone after %s, among 2000 timers after %s; %d ticks in %s, %d at once", alone, among, ticks-before,
			time.Since(at), most,
		)
		if most < 1999 || among > alone+100*time.Millisecond {
			t.Errorf("a deletion alone is handled after %s, among %d ticks at once after %s", alone, most, among)
		}
	})
}

// The exit waits for what has an end in sight, and no longer.
func TestExitWaitsForDaemons(t *testing.T) {
	stubborn := func(lingers time.Duration) handlers.Func {
		return func(ctx context.Context, _ *handlers.Call) error { <-ctx.Done(); time.Sleep(lingers); return nil }
	}
	tests := map[string]struct {
		reason     string
		background handlers.Background
		call       handlers.Func
		want       time.Duration
	}{
		"AtTheFirstWord": {"it ends by itself", handlers.Background{CancelBackoff: time.Minute}, func(
			_ context.Context, c *handlers.Call,
		) error {
			<-c.Live.Stopping()
			return nil
		}, 0},
		"Cancelled": {
			"its context ends after the backoff",
			handlers.Background{CancelBackoff: 4 * time.Second, CancelTimeout: 10 * time.Second},
			stubborn(2 * time.Second), 6 * time.Second,
		},
		"Abandoned": {
			"nobody waits beyond the timeout",
			handlers.Background{CancelBackoff: time.Second, CancelTimeout: 3 * time.Second}, stubborn(time.Minute),
			4 * time.Second,
		},
		"NoTimeout": {
			"what has none gets five seconds", handlers.Background{}, stubborn(time.Minute), 5 * time.Second,
		},
		"Waiting": {
			"one that waits for its first call is not called any more",
			handlers.Background{InitialDelay: func(map[string]any) (time.Duration, error) { return time.Hour, nil }},
			stubborn(time.Minute), 0,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := memapi.New()
				newPeople(t, server).create("ConfigMap", "c")
				stop := operate(t, server, "configmaps", daemon("d", tc.background, tc.call))
				time.Sleep(5 * time.Second)
				began := time.Now()
				stop()
				if took := time.Since(began); took < tc.want || took > tc.want+200*time.Millisecond {
					t.Errorf("%s: the exit took %s, want %s", tc.reason, took, tc.want)
				}
				time.Sleep(2 * time.Minute) // abandoned ones end, too
			})
		})
	}
}

// With a bound, the surplus waits for its turn, and one that is stopped meanwhile is never called.
func TestDaemonsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := memapi.New()
		p := newPeople(t, server)
		var mu sync.Mutex
		var began []string
		stop := operateAll(t, server, reconcilers.Options{Daemons: 2}, to(t, "configmaps", daemon("d",
			handlers.Background{}, func(ctx context.Context, call *handlers.Call) error {
				mu.Lock()
				began = append(began, (&unstructured.Unstructured{Object: call.Live.Object()}).GetName())
				mu.Unlock()
				<-ctx.Done()
				return nil
			})))
		defer stop()
		for _, name := range []string{"a", "b", "c", "d"} {
			time.Sleep(time.Second)
			p.create("ConfigMap", name)
		}
		time.Sleep(time.Second)
		p.remove("ConfigMap", "c") // it waits, and is let go at once
		time.Sleep(time.Second)
		if left := p.count("ConfigMap"); left != 3 {
			t.Errorf("%d objects are left: one whose daemon never began has nothing to wait for", left)
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
