package reconcilers_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers"
)

// handledObjects holds many objects that were handled before, and counts writes and calls since then.
type handledObjects struct {
	server *memapi.Server
	size   int

	writes, calls atomic.Int64

	mu           sync.Mutex
	evaluated    map[types.UID]bool
	allEvaluated chan struct{} // closed when all objects have been evaluated
}

// newHandledObjects lets an operator handle one object, and creates the others as copies of it.
func newHandledObjects(t *testing.T, size int) *handledObjects {
	f := &handledObjects{server: memapi.New(), size: size}
	f.resetEvaluation()
	p := newDirectClient(t, f.server)
	p.create("ConfigMap", "first")
	stop := operateAll(t, f, reconcilers.Options{}, f.handlers(t)...)
	for len(p.get("ConfigMap", "first").GetAnnotations()) == 0 {
		time.Sleep(10 * time.Millisecond)
	}
	stop()
	handled := p.get("ConfigMap", "first")
	for n := range size - 1 {
		o := p.object("ConfigMap", fmt.Sprint("c", n))
		o.SetAnnotations(handled.GetAnnotations())
		o.SetFinalizers(handled.GetFinalizers())
		if err := p.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	return f
}

// RoundTrip counts writes.
func (f *handledObjects) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodGet {
		f.writes.Add(1)
	}
	return f.server.RoundTrip(r)
}

// resetEvaluation starts another wait until each object has been evaluated.
func (f *handledObjects) resetEvaluation() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.evaluated, f.allEvaluated = map[types.UID]bool{}, make(chan struct{})
}

// handlers returns handlers that count their calls, and whose filters record the evaluated objects.
func (f *handledObjects) handlers(t *testing.T) (all []reconcilers.Registration) {
	for _, reason := range []cause.Reason{cause.Create, cause.Update, cause.Delete} {
		h := counting("h", reason, &f.calls)
		h.Filters = []handlers.Filter{f.recordEvaluation}
		all = append(all, registrationFor(t, "configmaps", h))
	}
	return append(all, registrationFor(t, "configmaps", counting("field", "", &f.calls)))
}

func (f *handledObjects) recordEvaluation(_ context.Context, c *cause.Cause) (bool, error) {
	uid := (&unstructured.Unstructured{Object: c.Body()}).GetUID()
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.evaluated[uid] {
		f.evaluated[uid] = true
		if len(f.evaluated) == f.size {
			close(f.allEvaluated)
		}
	}
	return true, nil
}

// TestTakeOver shows that a paused operator takes over with one listing, like one that has just started: nothing is
// handled twice, and nothing is written.
func TestTakeOver(t *testing.T) {
	size := 300
	if asked := os.Getenv("TAKEOVER_OBJECTS"); asked != "" {
		var err error
		if size, err = strconv.Atoi(asked); err != nil {
			t.Fatal(err)
		}
	}
	f := newHandledObjects(t, size)
	f.calls.Store(0)
	f.writes.Store(0)
	took := map[string]time.Duration{}
	measure := func(what string, act func()) {
		f.resetEvaluation()
		began := time.Now()
		act()
		<-f.allEvaluated
		took[what] = time.Since(began).Round(time.Millisecond)
	}
	var stop func()
	measure("a fresh start", func() { stop = operateAll(t, f, reconcilers.Options{}, f.handlers(t)...) })
	stop()
	gate := &reconcilers.Gate{}
	gate.Set(true)
	stop = operateAll(t, f, reconcilers.Options{Gate: gate}, f.handlers(t)...)
	time.Sleep(100 * time.Millisecond) // enough time for a mistake
	measure("a take-over", func() { gate.Set(false) })
	gate.Set(true)
	<-gate.Idle()
	measure("a second take-over", func() { gate.Set(false) })
	gate.Set(true)
	<-gate.Idle()
	stop()
	t.Logf("%d objects: %v", size, took)
	if f.calls.Load() != 0 || f.writes.Load() != 0 {
		t.Errorf("%d calls and %d writes for objects that were handled before, want none", f.calls.Load(),
			f.writes.Load())
	}
}
