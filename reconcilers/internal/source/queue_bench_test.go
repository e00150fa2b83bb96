package source_test

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/compact/compacttest"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/source"
	"github.com/kopf-runtime/kopf-runtime/test/benchmarks/objects"
)

// crowded is a queue in which 10,000 requests wait, as many of each priority.
func crowded(b *testing.B) *source.PriorityQueue {
	b.Helper()
	q := emptied(b)
	priorities := []int{source.PriorityDeletion, source.PriorityChange, source.PriorityRetry, source.PriorityResume}
	for n := range 10_000 {
		q.AddWithOpts(
			priorityqueue.AddOpts{Priority: &priorities[n%len(priorities)]}, named(fmt.Sprint("waiting-", n)),
		)
	}
	return q
}

func emptied(b *testing.B) *source.PriorityQueue {
	b.Helper()
	q := source.NewQueue(source.NewPlaces(10, source.Observer{}), limiter())
	b.Cleanup(q.ShutDown)
	return q
}

// served is what a worker does with the queue: it takes the request that has its turn, and gives it back.
func served(b *testing.B, q *source.PriorityQueue) (r source.Request, priority int) {
	r, priority, shutdown := q.GetWithPriority()
	if shutdown {
		b.Fatal("the queue is shut down")
	}
	q.Release(r)
	return r, priority
}

// BenchmarkQueue is what one request costs while 10,000 others wait: one that has its turn, is released and comes
// again; one that waits already; and one that is put off once more.
func BenchmarkQueue(b *testing.B) {
	steps := map[string]func(b *testing.B, q *source.PriorityQueue){
		"GetReleaseAdd": func(b *testing.B, q *source.PriorityQueue) {
			r, priority := served(b, q)
			q.AddWithOpts(priorityqueue.AddOpts{Priority: &priority}, r)
		},
		"AddWaiting": func(_ *testing.B, q *source.PriorityQueue) { q.Add(named("waiting-2")) },
		"AddDelayed": func(_ *testing.B, q *source.PriorityQueue) { q.AddAfter(named("delayed"), time.Hour) },
	}
	for name, step := range steps {
		b.Run(name, func(b *testing.B) {
			q := crowded(b)
			waiting := q.Len()
			b.ReportAllocs()
			for b.Loop() {
				step(b, q)
			}
			if q.Len() != waiting {
				b.Fatalf("%d requests wait, want %d", q.Len(), waiting)
			}
		})
	}
}

// deaf is told of events, and does nothing.
type deaf struct{}

func (deaf) Listed(source.Object)            {}
func (deaf) Deleted(source.Object)           {}
func (deaf) Seen(string, source.Object) bool { return true }

// BenchmarkEvent is the way of an update from the informer to a worker, without anything that others do on it.
func BenchmarkEvent(b *testing.B) {
	for _, o := range objects.All {
		before := compacttest.Of(o.Tree())
		after := compacttest.Changed(before, func(u *unstructured.Unstructured) { u.SetResourceVersion("9999999") })
		b.Run(o.Name, func(b *testing.B) {
			q, events := emptied(b), source.Events{Watcher: deaf{}}
			updated := event.TypedUpdateEvent[source.Object]{ObjectOld: before, ObjectNew: after}
			b.ReportAllocs()
			for b.Loop() {
				events.Update(b.Context(), updated, q)
				if r, _ := served(b, q); r.Name != after.GetName() {
					b.Fatalf("got %v, not the object of the event", r)
				}
			}
		})
	}
}
