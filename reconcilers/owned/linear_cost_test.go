package owned_test

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-runtime/kopf-runtime/internal/compact"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/owned"
	"github.com/kopf-runtime/kopf-runtime/test/growth"
	"github.com/kopf-runtime/kopf-runtime/test/kits/compacttest"
)

// TestManyOwnersLinear shows that the cost of an event grows linearly with the owners of the child. A user can add
// about ten thousand references to one object.
func TestManyOwnersLinear(t *testing.T) {
	growth.Linear(t, 2000, func(size int) func() {
		owners := make([]string, size)
		for i := range owners {
			owners[i] = fmt.Sprintf("b6fdc2cc-a3ee-4e4e-8c3c-1a2b3c%06d", i)
		}
		w := newHarness(t)
		seen := func(event string, version, owned int) func() {
			pod := compacttest.NewObject(child("c", version, owners[:owned]...).Object)
			return func() {
				if err := w.pods.HandleEvent(event, pod); err != nil {
					t.Error(err)
				}
			}
		}
		events := []func(){
			seen(owned.Added, 1, size), seen(owned.Modified, 2, size), seen(owned.Modified, 3, size/2),
			seen(owned.Deleted, 4, size),
		}
		return func() {
			for _, event := range events {
				event()
			}
			w.journal = nil
		}
	})
}

// TestManyWaitsLinear shows that the cost of many waits grows linearly while events of other objects arrive.
func TestManyWaitsLinear(t *testing.T) {
	growth.Linear(t, 1000, func(size int) func() {
		w := newHarness(t)
		source := w.StartSource([]*handlers.Handler{pods},
			func(schema.GroupKind, types.NamespacedName) *compact.CachedObject { return nil })
		pod, h := compacttest.NewObject(child("stranger", 1).Object), &handlers.Handler{ID: "h"}
		for i := range size {
			key := types.NamespacedName{Namespace: "ns", Name: fmt.Sprint("o", i)}
			w.route.NoteEvent(types.UID(fmt.Sprint("u", i)), key)
		}
		return func() {
			for i := range size {
				w.await(owned.ChildWait{
					Owner: types.UID(fmt.Sprint("u", i)), Handler: h, AllowAnyObject: true,
					Kind: schema.GroupKind{Kind: "Pod"}, Namespace: "ns", Name: fmt.Sprint("p", i),
				})
				if err := source.HandleEvent(owned.Modified, pod); err != nil {
					t.Error(err)
				}
			}
		}
	})
}

// TestOwnersOnce shows that several references to one owner count once.
func TestOwnersOnce(t *testing.T) {
	w := newHarness(t, recordingHandler("h"))
	for _, name := range []string{"a", "b"} {
		w.route.NoteEvent(types.UID(name), types.NamespacedName{Namespace: "ns", Name: name})
	}
	w.deliverEvent(w.pods, owned.Added, child("c", 1, "a", "b", "a", label+"=b"))
	w.want("each owner gets one pass", "pass b", "pass a")
}
