package reconcilers_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers"
)

// writeWord returns a function that takes a while, and then writes a word to the object.
func writeWord(word string, takes time.Duration, calls *atomic.Int64) handlers.Func {
	return func(_ context.Context, c *handlers.Invocation) error {
		calls.Add(1)
		time.Sleep(takes)
		return c.Writer.AddTransform(func(body map[string]any) error {
			return unstructured.SetNestedField(body, word, "data", "word")
		})
	}
}

func storedWord(o *unstructured.Unstructured) string {
	word, _, _ := unstructured.NestedString(o.Object, "data", "word")
	return word
}

// TestOutcomesThatAreRefusedInAPause shows that the outcome of a handler is written in a pause as soon as the API
// server accepts it, whether it was refused before or during the pause. Until then, the handler counts as running, but
// only up to the pause timeout. Remaining outcomes are written after the pause, without another call of the handler.
func TestOutcomesThatAreRefusedInAPause(t *testing.T) {
	change := func(call handlers.Func) *handlers.Handler {
		return &handlers.Handler{ID: "h", Reason: cause.Create, Call: call}
	}
	tick := func(call handlers.Func) *handlers.Handler { return timer("h", 24*time.Hour, call) }
	tests := map[string]struct {
		reason        string
		of            func(call handlers.Func) *handlers.Handler
		takes         time.Duration // of the handler
		pause, outage time.Duration // when the pause begins, and when the outage ends
		rest          time.Duration // the time of the check
		late          bool          // the outcome is written after the pause
		calls         int64
	}{
		"EndsInThePause": {"the outcome of a handler that ends in the pause is written after the outage", change,
			10 * time.Second, 5 * time.Second, 18 * time.Second,
			25 * time.Second, false, 1},
		"EndedBefore": {"an outcome refused before the pause is written in the pause", change, time.Second,
			30 * time.Second, 31 * time.Second,
			35 * time.Second, false, 1},
		"LongOutage": {"an outcome that cannot be written in time is written after the pause", change, 10 * time.Second,
			5 * time.Second, time.Hour,
			46 * time.Second, true, 1},
		"Tick": {"the outcome of a tick is written in the pause, and the timer starts again afterwards", tick,
			10 * time.Second, 5 * time.Second, 18 * time.Second,
			30 * time.Second, false, 2},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server, gate, began := memapi.New(), &reconcilers.Gate{}, time.Now()
				p := newDirectClient(t, server)
				p.create("ConfigMap", "c")
				var calls atomic.Int64
				stop := operateAll(t, refusePatches(server, func(patch string) int {
					if time.Since(began) < tc.outage && !strings.Contains(patch, "finalizers") {
						return 500
					}
					return 0
				}), reconcilers.Options{Gate: gate},
					registrationFor(t, "configmaps", tc.of(writeWord("done", tc.takes, &calls))))
				defer stop()
				time.Sleep(tc.pause)
				gate.Set(true)
				time.Sleep(min(tc.outage, tc.rest) - tc.pause - time.Millisecond)
				if !tc.late && gate.Busy() != 1 {
					t.Errorf("%s: %d of 1 counts as running", tc.reason, gate.Busy())
				}
				time.Sleep(tc.rest - time.Since(began))
				if got := storedWord(p.get("ConfigMap", "c")); (got == "done") == tc.late || gate.Busy() != 0 {
					t.Errorf("%s: the word is %q, %d count as running", tc.reason, got, gate.Busy())
				}
				time.Sleep(2 * time.Hour)
				gate.Set(false)
				time.Sleep(time.Minute)
				if got := storedWord(p.get("ConfigMap", "c")); got != "done" || calls.Load() != tc.calls {
					t.Errorf("%s: finally, the word is %q, after %d calls", tc.reason, got, calls.Load())
				}
			})
		})
	}
}
