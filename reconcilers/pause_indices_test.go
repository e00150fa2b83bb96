package reconcilers_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/indexes"
)

// indexRecorder records what handlers find in an index, and when.
type indexRecorder struct {
	index     *indexes.ObjectIndex
	startTime time.Time

	mu      sync.Mutex
	records []string
}

func (f *indexRecorder) call(_ context.Context, c *handlers.Invocation) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.records = append(f.records, fmt.Sprintf("%s after %s: %s", c.Handler.ID,
		time.Since(f.startTime).Round(time.Second),
		keysOf(f.index)))
	return nil
}

// takeRecords returns the sorted records, and starts a new period.
func (f *indexRecorder) takeRecords() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	found := f.records
	slices.Sort(found)
	f.startTime, f.records = time.Now(), nil
	return found
}

// TestHandlersWaitForIndicesAfterEachPause shows that after each pause, handlers wait until all indices are filled
// again, as at the start. They find neither old entries nor a part of the new ones.
func TestHandlersWaitForIndicesAfterEachPause(t *testing.T) {
	onServer(t, func(t *testing.T, server *memapi.Server, p directClient) {
		p.create("Secret", "s0")
		p.create("ConfigMap", "c0")
		index, filling := byName()
		gate := &reconcilers.Gate{}
		f := &indexRecorder{index: index, startTime: time.Now()}
		stop := operateAll(t, delayLists(server, "secrets", steady(20*time.Second)), reconcilers.Options{Gate: gate},
			registrationFor(t, "secrets", filling),
			registrationFor(t, "configmaps", &handlers.Handler{ID: "change", Reason: cause.Create, Call: f.call}),
			registrationFor(t, "configmaps", &handlers.Handler{ID: "daemon", Family: handlers.Background, Call: f.call,
				Background: &handlers.BackgroundOptions{Daemon: true}}))
		defer stop()
		time.Sleep(time.Minute)
		want := []string{"change after 20s: s0", "daemon after 20s: s0"}
		if got := f.takeRecords(); !slices.Equal(got, want) {
			t.Errorf("at the start: found %q, want %q", got, want)
		}
		for n := 1; n <= 3; n++ {
			gate.Set(true)
			time.Sleep(time.Second)
			p.remove("Secret", fmt.Sprint("s", n-1))
			p.create("Secret", fmt.Sprint("s", n))
			p.create("ConfigMap", fmt.Sprint("c", n))
			time.Sleep(time.Minute)
			f.takeRecords()
			gate.Set(false)
			time.Sleep(time.Minute)
			want := []string{fmt.Sprintf("change after 20s: s%d", n), fmt.Sprintf("daemon after 20s: s%d", n)}
			if got := f.takeRecords(); !slices.Equal(got, want) {
				t.Errorf("after pause %d: found %q, want %q", n, got, want)
			}
		}
	})
}
