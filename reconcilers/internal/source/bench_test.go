package source_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/source"
	"github.com/kopf-runtime/kopf-runtime/test/benchmarks/objects"
	"github.com/kopf-runtime/kopf-runtime/test/kits/compacttest"
)

// countingQueue is a queue and a watcher. It counts requests and events.
type countingQueue struct {
	priorityqueue.PriorityQueue[source.Request] // unused

	requests, events int
}

func (c *countingQueue) AddWithOpts(priorityqueue.AddOpts, ...source.Request) { c.requests++ }

func (*countingQueue) NoteListed(source.Object)               {}
func (*countingQueue) NoteDeleted(source.Object)              {}
func (c *countingQueue) NoteEvent(string, source.Object) bool { c.events++; return true }

// BenchmarkEvents measures an informer event up to its addition to the queue.
func BenchmarkEvents(b *testing.B) {
	for _, o := range objects.All {
		before := compacttest.NewObject(o.Tree())
		after := compacttest.ChangedCopy(before, func(u *unstructured.Unstructured) { u.SetResourceVersion("9999999") })
		deliver := map[string]func(e source.Events, q source.Queue){
			"Listed": func(e source.Events, q source.Queue) {
				e.Create(b.Context(), event.TypedCreateEvent[source.Object]{Object: after, IsInInitialList: true}, q)
			},
			"Modified": func(e source.Events, q source.Queue) {
				e.Update(b.Context(), event.TypedUpdateEvent[source.Object]{ObjectOld: before, ObjectNew: after}, q)
			},
			"Deleted": func(e source.Events, q source.Queue) {
				e.Delete(b.Context(), event.TypedDeleteEvent[source.Object]{Object: after}, q)
			},
		}
		for name, deliver := range deliver {
			b.Run(o.Name+"/"+name, func(b *testing.B) {
				got := &countingQueue{}
				b.ReportAllocs()
				for b.Loop() {
					deliver(source.Events{Observer: got}, got)
				}
				if got.requests == 0 || got.requests != got.events {
					b.Fatalf("got %d requests for %d events", got.requests, got.events)
				}
			})
		}
	}
}
