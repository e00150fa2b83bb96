package reconcilers_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers"
)

// TestGoneObjectsAreForgotten shows that gone objects are forgotten, even those that are deleted during a pause,
// without an event.
func TestGoneObjectsAreForgotten(t *testing.T) {
	onServer(t, func(t *testing.T, server *memapi.Server, p directClient) {
		var mu sync.Mutex
		names, forgotten := map[types.UID]string{}, []string{}
		gate := &reconcilers.Gate{}
		stop := operateAll(t, server, reconcilers.Options{Gate: gate, OnGone: func(uid types.UID) {
			mu.Lock()
			defer mu.Unlock()
			forgotten = append(forgotten, names[uid])
		}}, registrationFor(t, "configmaps", daemon("d", handlers.BackgroundOptions{},
			func(ctx context.Context, call *handlers.Invocation) error {
				object := unstructured.Unstructured{Object: liveBody(call)}
				mu.Lock()
				names[object.GetUID()] = object.GetName()
				mu.Unlock()
				<-ctx.Done()
				return nil
			})))
		defer stop()
		for _, name := range []string{"a", "b", "c"} {
			p.create("ConfigMap", name)
		}
		time.Sleep(5 * time.Second)
		p.remove("ConfigMap", "a")
		time.Sleep(5 * time.Second)
		gate.Set(true)
		time.Sleep(time.Second)
		// Remove the finalizer by force, because the paused operator does not.
		patch := p.object("ConfigMap", "b")
		if err := p.Get(t.Context(), types.NamespacedName{Namespace: "default", Name: "b"}, patch); err != nil {
			t.Fatal(err)
		}
		patch.SetFinalizers(nil)
		if err := p.Update(t.Context(), patch); err != nil {
			t.Fatal(err)
		}
		p.remove("ConfigMap", "b")
		time.Sleep(time.Minute)
		gate.Set(false)
		time.Sleep(time.Minute)
		mu.Lock()
		defer mu.Unlock()
		slices.Sort(forgotten)
		forgotten = slices.Compact(forgotten) // again after the end of its daemon
		if d := cmp.Diff([]string{"a", "b"}, forgotten); d != "" {
			t.Errorf("-want, +got:\n%s", d)
		}
	})
}

// TestForgottenBeforeDeletedEvent shows that Forget is called after the event handlers of the deletion.
func TestForgottenBeforeDeletedEvent(t *testing.T) {
	onServer(t, func(t *testing.T, server *memapi.Server, p directClient) {
		var order = make(chan string, 10)
		stop := operateAll(t, server, reconcilers.Options{OnGone: func(types.UID) { order <- "forget" }},
			registrationFor(t, "configmaps", &handlers.Handler{ID: "e", Family: handlers.Watching,
				Call: func(_ context.Context, c *handlers.Invocation) error {
					order <- c.Cause.EventType
					return nil
				}}))
		time.Sleep(time.Second)
		p.create("ConfigMap", "a")
		time.Sleep(time.Second)
		p.remove("ConfigMap", "a")
		time.Sleep(time.Minute)
		stop()
		close(order)
		var all []string
		for s := range order {
			all = append(all, s)
		}
		if strings.Join(all, " ") != "ADDED DELETED forget" {
			t.Errorf("the order is %v, want ADDED, DELETED, forget", all)
		}
	})
}
