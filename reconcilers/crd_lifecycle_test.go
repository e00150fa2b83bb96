package reconcilers_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/test/growth"
)

func definition() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{
			"name": "comets.sky.example.org",
		},
		"spec": map[string]any{
			"group": "sky.example.org", "scope": "Namespaced",
			"names": map[string]any{
				"kind": "Comet", "plural": "comets", "singular": "comet", "categories": []any{"sky"},
			},
			"versions": []any{map[string]any{"name": "v1", "served": true, "storage": true}},
		},
	}}
}

// TestKindsThatComeAndGoLeaveNothing shows that the informer and all goroutines of a custom kind end with the kind.
func TestKindsThatComeAndGoLeaveNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-all runs it")
	}
	const cycles = 50
	synctest.Test(t, func(t *testing.T) {
		connection := &watchCounter{RoundTripper: memapi.New(), plural: "comets"}
		people, err := client.New(memapi.Config(connection), client.Options{})
		if err != nil {
			t.Fatal(err)
		}
		var called atomic.Int64
		stop := operate(t, connection, "category=sky", &handlers.Handler{
			ID: "c", Reason: cause.Create, Call: func(
				context.Context, *handlers.Invocation,
			) error {
				called.Add(1)
				return nil
			},
		})
		defer stop()
		var goroutines []int
		for cycle := range cycles {
			crd := definition()
			comet := &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "sky.example.org/v1", "kind": "Comet", "metadata": map[string]any{
					"name": fmt.Sprint("c", cycle), "namespace": "default",
				},
			}}
			for _, made := range []client.Object{crd, comet} {
				if err := people.Create(t.Context(), made); err != nil {
					t.Fatalf("cycle %d: %v", cycle, err)
				}
			}
			time.Sleep(5 * time.Second)
			if n := connection.open.Load(); n != 1 || called.Load() != int64(cycle+1) {
				t.Fatalf(
					"cycle %d: the kind is installed: %d watches are open, and %d objects were handled", cycle, n,
					called.Load(),
				)
			}
			if err := people.Delete(t.Context(), crd); err != nil {
				t.Fatalf("cycle %d: %v", cycle, err)
			}
			time.Sleep(time.Minute)
			synctest.Wait()
			if n := connection.open.Load(); n != 0 {
				t.Fatalf("cycle %d: the kind is removed, but %d watches are open", cycle, n)
			}
			goroutines = append(goroutines, growth.Goroutines())
		}
		t.Logf("goroutines after each of %d cycles: %v", cycles, goroutines)
		if first, last := goroutines[1], goroutines[cycles-1]; last > first+2 {
			t.Errorf("%d goroutines after two cycles, %d after %d, want at most 2 more: %v", first, last, cycles,
				goroutines)
		}
	})
}
