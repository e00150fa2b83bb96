package kopf_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

const ownFinalizer = "test.example.org/finalizer"

// runFinalizers runs an operator for one router that has a finalizer of another controller.
func runFinalizers(
	t *testing.T, register func(s kopf.Selection[*router], server *memapi.Server), play func(server *memapi.Server),
) {
	t.Helper()
	onServer(t, func(t *testing.T, server *memapi.Server) {
		server.Install(routers)
		server.Put(routers, map[string]any{"metadata": map[string]any{
			"namespace": "ns", "name": "r1", "uid": "r1", "finalizers": []any{"other.example.org/hold"},
		}})
		op := kopf.New("test.example.org", kopf.Settings{AddToScheme: runtime.SchemeBuilder{addRouters}})
		register(kopf.For(op, &router{}), server)
		r := facadetest.Start(t, op, facadetest.Against(memapi.Config(server)))
		r.Ready()
		time.Sleep(10 * time.Second)
		play(server)
		if err := r.Stop(); err != nil {
			t.Fatal(err)
		}
	})
}

func finalizersOf(server *memapi.Server) any {
	metadata, _ := server.Object(routers, "ns", "r1")["metadata"].(map[string]any)
	return metadata["finalizers"]
}

// TestHandlersDoNotReleaseTheObject shows that handlers that remove all finalizers do not remove the operator's
// own, whatever their family.
func TestHandlersDoNotReleaseTheObject(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-all runs it")
	}
	release := func(o *router) { o.SetFinalizers(nil) }
	for name, register := range map[string]func(s kopf.Selection[*router]){
		"Delete": func(s kopf.Selection[*router]) {
			s.OnDelete("release", func(_ context.Context, c *kopf.Change[*router]) error {
				c.Patch(release)
				return nil
			})
		},
		"TryPatch": func(s kopf.Selection[*router]) {
			s.OnDelete("release", func(_ context.Context, c *kopf.Change[*router]) error {
				c.TryPatch(func(o *router) error { release(o); return nil })
				return nil
			})
		},
		"SubHandler": func(s kopf.Selection[*router]) {
			s.OnDelete("release", func(_ context.Context, c *kopf.Change[*router]) error {
				c.Sub("inner", func(_ context.Context, c *kopf.Change[*router]) error { c.Patch(release); return nil })
				return nil
			})
		},
		"Event": func(s kopf.Selection[*router]) {
			s.OnEvent("release", func(_ context.Context, e *kopf.WatchEvent[*router]) error {
				if e.Object.DeletionTimestamp != nil {
					e.Patch(release)
				}
				return nil
			})
		},
		"Daemon": func(s kopf.Selection[*router]) {
			s.Daemon("release", func(_ context.Context, r *kopf.Task[*router]) error {
				<-r.Stopping()
				r.Patch(release)
				return nil
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			var calls atomic.Int32
			runFinalizers(t, func(s kopf.Selection[*router], _ *memapi.Server) {
				register(s)
				s.OnDelete("free", func(_ context.Context, c *kopf.Change[*router]) error {
					if calls.Add(1) < 3 {
						return kopf.Temporary(fmt.Errorf("not yet"), time.Minute)
					}
					return nil
				})
			}, func(server *memapi.Server) {
				server.Delete(routers, "ns", "r1")
				time.Sleep(30 * time.Second)
				if d := cmp.Diff(any([]any{ownFinalizer}), finalizersOf(server)); d != "" {
					t.Errorf("the finalizer stays while a handler waits for its retry: -want, +got:\n%s", d)
				}
				time.Sleep(time.Hour)
				if server.Object(routers, "ns", "r1") != nil || calls.Load() != 3 {
					t.Errorf("the object is deleted after the last handler: got %d calls, want 3", calls.Load())
				}
			})
		})
	}
}

// TestFinalizersFromTheCopyAreAddedOnce shows that a patch that sets the finalizers of the handler's copy adds each
// finalizer once.
func TestFinalizersFromTheCopyAreAddedOnce(t *testing.T) {
	runFinalizers(t, func(s kopf.Selection[*router], server *memapi.Server) {
		s.OnDelete("free", func(context.Context, *kopf.Change[*router]) error { return nil })
		s.OnCreate("hold", func(_ context.Context, c *kopf.Change[*router]) error {
			server.Edit(routers, "ns", "r1", func(o map[string]any) { // causes a conflict
				if metadata, ok := o["metadata"].(map[string]any); ok {
					metadata["labels"] = map[string]any{"a": "b"}
				}
			})
			c.Patch(func(o *router) { o.SetFinalizers(append(c.Object.GetFinalizers(), "mine.example.org/hold")) })
			return nil
		})
	}, func(server *memapi.Server) {
		want := any([]any{"other.example.org/hold", ownFinalizer, "mine.example.org/hold"})
		if d := cmp.Diff(want, finalizersOf(server)); d != "" {
			t.Errorf("each finalizer is added once: -want, +got:\n%s", d)
		}
	})
}

// TestMutationsDoNotReleaseTheObject shows that a mutation that removes all finalizers keeps the operator's own.
func TestMutationsDoNotReleaseTheObject(t *testing.T) {
	op := kopf.New("test.example.org")
	kopf.For(op, &Widget{}).Mutate("release", func(_ context.Context, a *Admission) error {
		a.Object.Finalizers = nil
		return nil
	})
	asks := reviewerOf(t, op) // resolves the settings
	kopf.Connect(op, fake.NewClientBuilder().Build())
	asked := request(map[string]any{"operation": "UPDATE"})
	metadata, _ := asked["object"].(map[string]any)["metadata"].(map[string]any)
	metadata["finalizers"] = []any{ownFinalizer, "other.example.org/hold"}
	asked["oldObject"] = asked["object"]
	after := applyOperations(t, asked["object"], asks.ask(t.Context(), t, asked).Patch)
	metadata, _ = after["metadata"].(map[string]any)
	if d := cmp.Diff(any([]any{ownFinalizer}), metadata["finalizers"]); d != "" {
		t.Errorf("a mutation does not remove the operator's finalizer: -want, +got:\n%s", d)
	}
}
