package reconcilers_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers"
	kindapi "github.com/kopf-runtime/kopf-runtime/reconcilers/kind"
	"github.com/kopf-runtime/kopf-runtime/test/growth"
)

// TestIdleKindsCostFewGoroutines shows that an idle kind needs only the goroutines of its watch, also after it was
// busy. The server's side of the watches is included.
func TestIdleKindsCostFewGoroutines(t *testing.T) {
	const kinds, objects, limit = 40, 300, 25
	onServer(t, func(t *testing.T, server *memapi.Server, p directClient) {
		slow := &handlers.Handler{ID: "c", Reason: cause.Create, Call: func(
			context.Context, *handlers.Invocation,
		) error {
			time.Sleep(time.Second)
			return nil
		}}
		var all []reconcilers.Registration
		for n := range kinds {
			plural := fmt.Sprintf("gadget%ds", n)
			server.Install(
				memapi.Resource{
					Group: "idle.example.org", Version: "v1", Kind: fmt.Sprintf("Gadget%d", n), Plural: plural,
					Namespaced: true,
				},
			)
			all = append(all, registrationFor(t, plural+".idle.example.org", slow))
		}
		without, stack := goroutines()
		stop := operateAll(t, server, reconcilers.Options{}, all...)
		defer stop()
		time.Sleep(10 * time.Second)
		idle, stacks := goroutines()
		each := (idle - without) / kinds
		t.Logf("%d goroutines and %d KiB of stacks for each of %d idle kinds", each, (stacks-stack)/kinds/1024, kinds)
		if each > limit {
			t.Errorf("%d goroutines for each idle kind, want at most %d", each, limit)
		}
		for n := range objects {
			o := &unstructured.Unstructured{
				Object: map[string]any{"apiVersion": "idle.example.org/v1", "kind": "Gadget7"},
			}
			o.SetNamespace("default")
			o.SetName(fmt.Sprint("g", n))
			if err := p.Create(t.Context(), o); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(500 * time.Millisecond)
		busy, _ := goroutines()
		time.Sleep(30 * time.Second)
		rested, _ := goroutines()
		t.Logf("goroutines: %d without kinds, %d idle, %d busy, %d idle again", without, idle, busy, rested)
		if busy < idle+kindapi.DefaultWorkers/2 || rested > idle+5 {
			t.Errorf(
				"workers must exist only while they have work: %d goroutines before, %d meanwhile, %d after", idle,
				busy,
				rested,
			)
		}
	})
}

func goroutines() (count int, stacks uint64) {
	synctest.Wait()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return growth.Goroutines(), m.StackInuse
}
