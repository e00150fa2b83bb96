package background_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"

	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/internal/jsontext"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/background"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/source"
	"github.com/kopf-runtime/kopf-runtime/test/growth"
)

// queueService is a kind without a cache. Its queue is never read, so it calls no handler.
type queueService struct {
	queue priorityqueue.PriorityQueue[source.Request]
}

func (queueService) Newest(types.NamespacedName, types.UID) *jsontext.LazyObject { return nil }

func (h queueService) Enqueue(key types.NamespacedName, handler string, after time.Duration) {
	h.queue.AddWithOpts(priorityqueue.AddOpts{After: after}, source.Request{NamespacedName: key, Handler: handler})
}

// TestIdleTimersCostLittle shows that an idle timer needs little memory, and no goroutine.
func TestIdleTimersCostLittle(t *testing.T) {
	const many, limit = 100_000, 150 << 20
	h := queueService{priorityqueue.New[source.Request]("")}
	defer h.queue.ShutDown()
	supervisor := &background.Supervisor{Ticks: &background.Limit{}, Daemons: &background.Limit{}}
	supervisor.AllowStarts(background.KindSettings{Log: logr.Discard(), Handlers: newChains(&handlers.Handler{
		ID: "t", Family: handlers.Background,
		Background: &handlers.BackgroundOptions{Interval: time.Hour, Idle: time.Hour},
	})}, h)
	used, goroutines := heap(), growth.Goroutines()
	for n := range many {
		body := map[string]any{
			"metadata": map[string]any{
				"namespace": "default", "name": fmt.Sprint("object-", n),
				"uid": fmt.Sprintf("00000000-0000-0000-0000-%012d", n),
			},
		}
		holds, _, err := supervisor.Supervise(
			t.Context(), &cause.Cause{
				Object: jsontext.NewFromValue(body), New: map[string]any{"spec": map[string]any{"n": int64(n)}},
			},
		)
		if err != nil || !holds {
			t.Fatalf("object %d must be held, without an error: held %v, error %v", n, holds, err)
		}
	}
	added, more := heap()-used, growth.Goroutines()-goroutines
	t.Logf("%d idle timers: %d MB of heap, %d bytes for each; %d more goroutines", many, added>>20, added/many, more)
	if added > limit || more > 0 {
		t.Errorf("%d bytes for %d idle timers, and %d additional goroutines", added, many, more)
	}
	supervisor.StopAndWait(background.Exiting)
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}
