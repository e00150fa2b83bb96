package source_test

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/source"
	"github.com/kopf-runtime/kopf-runtime/test/benchmarks/objects"
	"github.com/kopf-runtime/kopf-runtime/test/kits/compacttest"
)

// newFullQueue returns a queue with 10,000 waiting requests, equally many of each priority.
func newFullQueue(b *testing.B) *source.PriorityQueue {
	b.Helper()
	q := newDrainedQueue(b)
	priorities := []int{source.PriorityDeletion, source.PriorityChange, source.PriorityRetry, source.PriorityResume}
	for n := range 10_000 {
		q.AddWithOpts(
			priorityqueue.AddOpts{Priority: &priorities[n%len(priorities)]}, requestNamed(fmt.Sprint("waiting-", n)),
		)
	}
	return q
}

func newDrainedQueue(b *testing.B) *source.PriorityQueue {
	b.Helper()
	q := source.NewQueue(source.NewSlots(10, source.SlotsObserver{}), limiter())
	b.Cleanup(q.ShutDown)
	return q
}

// takeAndRelease takes the next request from the queue and releases it, as a worker does.
func takeAndRelease(b *testing.B, q *source.PriorityQueue) (r source.Request, priority int) {
	r, priority, shutdown := q.GetWithPriority()
	if shutdown {
		b.Fatal("the queue is shut down")
	}
	q.Release(r)
	return r, priority
}

// BenchmarkQueue measures one request while 10,000 others wait: a full turn, an addition of a waiting request, and
// another delay of a delayed one.
func BenchmarkQueue(b *testing.B) {
	steps := map[string]func(b *testing.B, q *source.PriorityQueue){
		"GetReleaseAdd": func(b *testing.B, q *source.PriorityQueue) {
			r, priority := takeAndRelease(b, q)
			q.AddWithOpts(priorityqueue.AddOpts{Priority: &priority}, r)
		},
		"AddWaiting": func(_ *testing.B, q *source.PriorityQueue) { q.Add(requestNamed("waiting-2")) },
		"AddDelayed": func(_ *testing.B, q *source.PriorityQueue) { q.AddAfter(requestNamed("delayed"), time.Hour) },
	}
	for name, step := range steps {
		b.Run(name, func(b *testing.B) {
			q := newFullQueue(b)
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

// ignoringWatcher is a watcher that ignores events.
type ignoringWatcher struct{}

func (ignoringWatcher) NoteListed(source.Object)             {}
func (ignoringWatcher) NoteDeleted(source.Object)            {}
func (ignoringWatcher) NoteEvent(string, source.Object) bool { return true }

// BenchmarkEvent measures an update from the informer to a worker, without the work of others on the way.
func BenchmarkEvent(b *testing.B) {
	for _, o := range objects.All {
		before := compacttest.NewObject(o.Tree())
		after := compacttest.ChangedCopy(before, func(u *unstructured.Unstructured) { u.SetResourceVersion("9999999") })
		b.Run(o.Name, func(b *testing.B) {
			q, events := newDrainedQueue(b), source.Events{Observer: ignoringWatcher{}}
			updated := event.TypedUpdateEvent[source.Object]{ObjectOld: before, ObjectNew: after}
			b.ReportAllocs()
			for b.Loop() {
				events.Update(b.Context(), updated, q)
				if r, _ := takeAndRelease(b, q); r.Name != after.GetName() {
					b.Fatalf("got %v, want the object of the event", r)
				}
			}
		})
	}
}
