package reconcilers_test

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers"
	"github.com/kopf-runtime/kopf-runtime/test/growth"
)

// TestPausedOperatorKeepsNothing shows that a paused operator needs no goroutines and no memory for its objects, before
// its first turn and after each one.
func TestPausedOperatorKeepsNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-all runs it")
	}
	const objects = 300
	onServer(t, func(t *testing.T, server *memapi.Server, p directClient) {
		for n := range objects {
			o := p.object("ConfigMap", fmt.Sprint("c", n))
			o.Object["data"] = map[string]any{"large": noise(uint64(n), 4096)} // as repetitive data is compressed
			if err := p.Create(t.Context(), o); err != nil {
				t.Fatal(err)
			}
		}
		gate := &reconcilers.Gate{}
		gate.Set(true)
		h := &handlers.Handler{ID: "h", Reason: cause.Resume, Initial: true,
			Call: func(context.Context, *handlers.Invocation) error { return nil }}
		stop := operateAll(t, server, reconcilers.Options{Gate: gate}, registrationFor(t, "configmaps", h),
			registrationFor(t, "secrets", daemon("d", handlers.BackgroundOptions{}, untilStopped)),
			registrationFor(t, "configmaps", timer("t", 24*time.Hour, succeed)))
		defer stop()
		p.create("Secret", "s")
		goroutines, _ := measureUse()
		var first uint64
		for turn := range 3 {
			gate.Set(false)
			serving, full := measureUse()
			gate.Set(true)
			paused, left := measureUse()
			t.Logf("turn %d: %d goroutines waiting, %d and %d KiB serving, %d and %d paused", turn, goroutines, serving,
				full/1024, paused, left/1024)
			if serving <= goroutines || paused > goroutines {
				t.Errorf("turn %d: %d goroutines before, %d meanwhile, %d after, want more only meanwhile", turn,
					goroutines, serving, paused)
			}
			if full < left+4096*objects {
				t.Errorf("turn %d: %d bytes in use while serving, and %d in the pause, want less", turn, full, left)
			}
			if first = cmp.Or(first, left); left > first+first/10 {
				t.Errorf("turn %d: %d bytes are left, %d after the first turn, want at most a tenth more", turn, left,
					first)
			}
		}
	})
}

// noise returns a text that cannot be compressed.
func noise(seed uint64, length int) string {
	source := rand.New(rand.NewPCG(seed, 0))
	text := make([]byte, length)
	for i := range text {
		text[i] = byte('!' + source.IntN(94))
	}
	return string(text)
}

// measureUse returns the goroutines and the bytes in use, after an hour.
func measureUse() (goroutines int, heap uint64) {
	time.Sleep(time.Hour)
	synctest.Wait()
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return growth.Goroutines(), m.HeapAlloc
}
