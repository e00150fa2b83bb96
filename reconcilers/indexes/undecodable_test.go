package indexes_test

import (
	"context"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kopf-runtime/kopf-runtime/internal/compact"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/indexes"
)

// TestUndecodableObjects shows that an object that cannot be decoded keeps its entries and does not affect other
// objects.
func TestUndecodableObjects(t *testing.T) {
	for _, reads := range []bool{false, true} {
		into := indexes.New()
		h := &handlers.Handler{ID: "ix", Family: handlers.Indexing, ReadsText: reads, Index: &handlers.IndexWork{
			Store: into, Call: func(_ context.Context, call *handlers.Invocation) (map[any]any, bool, error) {
				object, err := call.WorkingCopy()
				if err != nil {
					return nil, false, err
				}
				name, _ := object["metadata"].(map[string]any)["name"].(string)
				return map[any]any{name: true}, false, nil
			},
		}}
		said := ""
		feed := (&indexes.Indexer{}).BeginFeed(indexes.IndexTask{
			Handlers: []*adapters.HandlerChain{adapters.New(h, nil)},
			Log:      funcr.New(func(_, line string) { said += line }, funcr.Options{}),
		})
		feed.HandleEvent("ADDED", objectOf("a"))
		broken, err := compact.New([]byte(`{"metadata":{"name":"a","uid":"a"},"spec":nul}`), metav1.TypeMeta{})
		if err != nil {
			t.Fatal(err)
		}
		feed.HandleEvent("MODIFIED", broken)
		feed.HandleEvent("ADDED", objectOf("b"))
		got := []int{len(into.Get("a")), len(into.Get("b"))}
		if d := cmp.Diff([]int{1, 1}, got); d != "" || !strings.Contains(said, "keeping") {
			t.Errorf("by text %v: logged %q, -want, +got:\n%s", reads, said, d)
		}
	}
}
