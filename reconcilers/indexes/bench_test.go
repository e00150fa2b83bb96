package indexes_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-runtime/kopf-runtime/internal/compact"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/indexes"
	"github.com/kopf-runtime/kopf-runtime/test/benchmarks/objects"
	"github.com/kopf-runtime/kopf-runtime/test/kits/compacttest"
)

// BenchmarkFill50000 measures the time and the memory for an index of 50,000 pods with two keys each.
func BenchmarkFill50000(b *testing.B) {
	for b.Loop() {
		before := heap()
		index := filledIndex(50_000)
		b.ReportMetric(float64(heap()-before)/50_000, "heap-B/pod")
		runtime.KeepAlive(index)
	}
}

func BenchmarkLookup(b *testing.B) {
	index := filledIndex(50_000)
	var key any = "node-7"
	b.ReportAllocs()
	for b.Loop() {
		index.Get(key)
	}
}

// BenchmarkChange replaces the values of one of 50,000 pods, and looks one key up after that.
func BenchmarkChange(b *testing.B) {
	index := filledIndex(50_000)
	var key any = "node-7"
	entries := map[any]any{key: "pod-7", "pod-7": 7}
	b.ReportAllocs()
	for b.Loop() {
		index.ReplaceEntries(types.UID("pod-7"), entries)
		index.Get(key)
	}
}

// BenchmarkSeen measures an event of one of 1,000 objects on the goroutine of the informer: one index function is
// called, and its result replaces the former one, or the object is deleted and added again.
func BenchmarkSeen(b *testing.B) {
	for _, o := range objects.All {
		for name, types := range map[string][]string{"Modified": {"MODIFIED"}, "DeletedAdded": {"DELETED", "ADDED"}} {
			b.Run(o.Name+"/"+name, func(b *testing.B) {
				_, h := indexing(byNameAndNamespace)
				var indexer indexes.Indexer
				feed := indexer.BeginFeed(indexes.IndexTask{
					Handlers: []*adapters.HandlerChain{adapters.New(h, nil)},
					Log:      logr.Discard(),
				})
				all := make([]*compact.CachedObject, 1000)
				for i := range all {
					all[i] = numbered(o, i)
					feed.HandleEvent("", all[i])
				}
				feed.FinishList("1")
				b.ReportAllocs()
				for n := 0; b.Loop(); n++ {
					for _, eventType := range types {
						if !feed.HandleEvent(eventType, all[n%len(all)]) {
							b.Fatal("the feed does not count")
						}
					}
				}
			})
		}
	}
}

func byNameAndNamespace(_ context.Context, c *handlers.Invocation) (entries map[any]any, keep bool, err error) {
	metadata := c.Object["metadata"].(map[string]any)
	return map[any]any{metadata["name"]: c.Object["spec"], metadata["namespace"]: metadata["name"]}, false, nil
}

func numbered(o objects.Object, number int) *compact.CachedObject {
	return compacttest.ChangedCopy(compacttest.NewObject(o.Tree()), func(u *unstructured.Unstructured) {
		u.SetName(fmt.Sprint(u.GetName(), "-", number))
		u.SetUID(types.UID(u.GetName()))
	})
}

func heap() uint64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}
