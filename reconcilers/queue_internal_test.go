package reconcilers

import (
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/source"
)

func requestNamed(number int) source.Request {
	return source.Request{NamespacedName: types.NamespacedName{Name: strconv.Itoa(number)}}
}

// work takes requests until the queue ends, as a controller's worker does.
func work(q priorityqueue.PriorityQueue[source.Request], each func(source.Request)) {
	for {
		request, _, shutdown := q.GetWithPriority()
		if shutdown {
			return
		}
		each(request)
		q.Done(request)
	}
}

// handing has something done at the very moment when a queue hands a request out.
type handing struct{ act func() }

func (handing) Inc()            {}
func (h handing) Dec()          { h.act() }
func (handing) Set(float64)     {}
func (handing) Observe(float64) {}

func (h handing) NewDepthMetric(string) workqueue.GaugeMetric                         { return h }
func (h handing) NewAddsMetric(string) workqueue.CounterMetric                        { return h }
func (h handing) NewLatencyMetric(string) workqueue.HistogramMetric                   { return h }
func (h handing) NewWorkDurationMetric(string) workqueue.HistogramMetric              { return h }
func (h handing) NewUnfinishedWorkSecondsMetric(string) workqueue.SettableGaugeMetric { return h }
func (h handing) NewLongestRunningProcessorSecondsMetric(string) workqueue.SettableGaugeMetric {
	return h
}
func (h handing) NewRetriesMetric(string) workqueue.CounterMetric { return h }

// A bubble that leaves a goroutine behind is a failure.
func TestQueueShutsDownWhileItHandsOut(t *testing.T) {
	for range 50 {
		synctest.Test(t, func(t *testing.T) {
			var q priorityqueue.PriorityQueue[source.Request]
			var once sync.Once
			metrics := handing{func() {
				once.Do(func() {
					go q.ShutDown()
					for !q.ShuttingDown() {
						runtime.Gosched()
					}
				})
			}}
			q = newQueue(priorityqueue.New(t.Name(), func(o *priorityqueue.Opts[source.Request]) { o.MetricProvider = metrics }))
			go work(q, func(source.Request) {})
			synctest.Wait()
			q.Add(requestNamed(1))
		})
	}
}

func TestQueueGivesNothingWhileItCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(priorityqueue.New[source.Request](""))
		var got, left atomic.Int32
		for range 2 {
			go func() {
				defer left.Add(1)
				work(q, func(source.Request) { got.Add(1); time.Sleep(time.Minute) })
			}()
		}
		q.Add(requestNamed(1))
		synctest.Wait()
		q.ShutDown()
		q.ShutDown()
		synctest.Wait()
		if got.Load() != 1 || left.Load() != 1 {
			t.Errorf("one is at work, and one has left without a request: got %d, left %d", got.Load(), left.Load())
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if left.Load() != 2 {
			t.Error("a worker that was busy did not leave")
		}
		if _, shutdown := q.Get(); !shutdown {
			t.Error("a queue that has ended gives something")
		}
	})
}

func TestQueueServesWithPriorities(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(priorityqueue.New[source.Request](""))
		defer q.ShutDown()
		low, high := source.PriorityResume, source.PriorityDeletion
		q.AddWithOpts(priorityqueue.AddOpts{Priority: &low}, requestNamed(1))
		q.AddWithOpts(priorityqueue.AddOpts{Priority: &high}, requestNamed(2))
		synctest.Wait()
		request, priority, shutdown := q.GetWithPriority()
		if request != requestNamed(2) || priority != high || shutdown {
			t.Errorf("got %v with priority %d, shut down: %v", request, priority, shutdown)
		}
		if request, _ := q.Get(); request != requestNamed(1) {
			t.Errorf("then came %v", request)
		}
	})
}
