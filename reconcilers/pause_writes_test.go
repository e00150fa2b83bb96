package reconcilers_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
	"github.com/kopf-runtime/kopf-runtime/reconcilers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/cause"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
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

// TestOutcomesOfBeforeAPause shows that an outcome that could not be written before a pause is dropped after it if
// another operator has handled the object in the meantime.
func TestOutcomesOfBeforeAPause(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-all runs it")
	}
	fail := func(context.Context, *handlers.Invocation) error { return &execution.PendingError{Delay: time.Hour} }
	tests := map[string]struct {
		reason    string
		other     handlers.Func // of the other operator; nil if there is none
		meanwhile string        // an edit by another client
		word      string        // the final word
		retries   []int         // of the calls
		takeover  bool          // another process may have acted
	}{
		"Nobody": {"without another operator, the outcome is written after the pause",
			nil, `{}`, "first", []int{0}, false},
		"Takeover": {"after a takeover, the outcome is dropped without a trace of another operator",
			nil, `{}`, "first", []int{0, 0}, true},
		"Edited": {"an edit by a user does not drop the outcome, and is handled afterwards", nil,
			`{"data":{"more":"x"}}`, "first", []int{0}, false},
		"Handled": {"the outcome of the other operator is kept", writeWord("second", 0, new(atomic.Int64)), `{}`,
			"second",
			[]int{0}, false},
		"Tried": {"the attempts of both operators count", fail, `{}`, "first", []int{0, 1}, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := memapi.New()
				p := newDirectClient(t, server)
				p.create("ConfigMap", "c")
				var cut atomic.Bool
				cut.Store(true)
				var updates atomic.Int64
				var retries []int
				own, other := &reconcilers.Gate{}, &reconcilers.Gate{}
				other.Set(true)
				speak := writeWord("first", 0, new(atomic.Int64))
				stop := operateAll(t, refusePatches(server, func(string) int {
					if cut.Load() {
						return 500
					}
					return 0
				}), reconcilers.Options{Gate: own},
					registrationFor(t, "configmaps", &handlers.Handler{ID: "h", Reason: cause.Create,
						Call: func(ctx context.Context, c *handlers.Invocation) error {
							retries = append(retries, c.Retry)
							return speak(ctx, c)
						}}), registrationFor(t, "configmaps", counting("u", cause.Update, &updates)))
				defer stop()
				if tc.other != nil {
					defer operateAll(t, server, reconcilers.Options{Gate: other}, registrationFor(t, "configmaps",
						&handlers.Handler{ID: "h", Reason: cause.Create, Call: tc.other}))()
				}
				time.Sleep(10 * time.Second)
				own.Set(true)
				<-own.Idle()
				other.Set(false)
				time.Sleep(time.Minute)
				other.Set(true)
				<-other.Idle()
				p.merge("ConfigMap", "c", tc.meanwhile)
				if cut.Store(false); tc.takeover {
					own.NoteTakeover()
				}
				own.Set(false)
				time.Sleep(2 * time.Hour)
				if got := storedWord(p.get("ConfigMap", "c")); got != tc.word || !slices.Equal(retries, tc.retries) {
					t.Errorf("%s: the word is %q, the calls were %v", tc.reason, got, fmt.Sprint(retries))
				}
				if tc.meanwhile != "{}" && updates.Load() == 0 {
					t.Errorf("%s: the edit was not handled", tc.reason)
				}
			})
		})
	}
}
