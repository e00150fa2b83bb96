package reconcilers_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
	"github.com/kopf-runtime/kopf-runtime/reconcilers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
)

const heldBy = "coming.example.org/finalizer"

// heldWorld is one object, and when the functions in its background begin.
type heldWorld struct {
	people
	wire *memapi.Connection
	gate *reconcilers.Gate

	mu      sync.Mutex
	began   time.Time
	begins  []string
	patches int
}

// begin is a function that notes its first call, and that the object was not held then.
func (w *heldWorld) begin(id string) handlers.Func {
	first := true
	return func(context.Context, *handlers.Invocation) error {
		w.mu.Lock()
		defer w.mu.Unlock()
		if first {
			line := fmt.Sprintf("%s %s", time.Since(w.began).Truncate(time.Second), id)
			if !slices.Contains(w.get("ConfigMap", "c").GetFinalizers(), heldBy) {
				line += ", not held"
			}
			w.begins = append(w.begins, line)
		}
		first = false
		return nil
	}
}

// before makes the first patches of the object wait, and then fail, if that is asked for.
func (w *heldWorld) before(wait time.Duration, failures int) {
	w.wire.Before = func(_ context.Context, r memapi.Request) error {
		if r.Verb != "patch" {
			return nil
		}
		time.Sleep(wait)
		if w.patches++; w.patches <= failures {
			return memapi.Refusal(403)
		}
		return nil
	}
}

// A crash before the finalizer is written, and a deletion, must not leave over what a function in the background made
// (deviation D-daemon-held).
func TestBackgroundWaitsForTheFinalizer(t *testing.T) {
	never := 1 << 30
	for name, tc := range map[string]struct {
		reason string
		play   func(w *heldWorld)
		want   []string
	}{
		"SlowWrite": {
			"the functions wait for the answer", func(w *heldWorld) { w.before(5*time.Second, 0) },
			[]string{"5s d", "5s t"},
		},
		"RefusedAtFirst": {
			"the functions wait for the write that succeeds, after 1 s, 1 s and 2 s",
			func(w *heldWorld) { w.before(0, 3) }, []string{"4s d", "4s t"},
		},
		"Forbidden": {
			"an object that cannot be held has nothing in the background", func(w *heldWorld) { w.before(0, never) },
			nil,
		},
		"LostAnswer": {
			"the write was done, but that is unknown until the object is read again",
			func(w *heldWorld) {
				lost := false
				w.wire.After = func(_ context.Context, r memapi.Request) error {
					if r.Verb == "patch" && !lost {
						lost = true
						return errors.New("connection lost")
					}
					return nil
				}
			}, []string{"1s d", "1s t"},
		},
		"HeldFromTheBeginning": {
			"the finalizer of an admission webhook needs no write",
			func(w *heldWorld) {
				w.before(0, never)
				w.merge("ConfigMap", "c", `{"metadata":{"finalizers":["`+heldBy+`"]}}`)
			}, []string{"0s d", "0s t"},
		},
		"ClosedGate": {
			"a paused operator writes no finalizer, so nothing begins before it is resumed",
			func(w *heldWorld) {
				w.gate.Set(true)
				time.AfterFunc(20*time.Second, func() { w.gate.Set(false) })
			}, []string{"20s d", "20s t"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := memapi.New()
				w := &heldWorld{
					people: newPeople(t, server), wire: server.Connect(), gate: &reconcilers.Gate{}, began: time.Now(),
				}
				w.create("ConfigMap", "c")
				tc.play(w)
				stop := operateAll(t, w.wire, reconcilers.Options{Gate: w.gate},
					to(t, "configmaps", daemon("d", handlers.Background{}, w.begin("d"))),
					to(t, "configmaps", timer("t", time.Minute, w.begin("t"))))
				time.Sleep(10 * time.Minute)
				stop()
				slices.Sort(w.begins)
				if d := cmp.Diff(tc.want, w.begins); d != "" {
					t.Errorf("%s: -want, +got:\n%s", tc.reason, d)
				}
			})
		})
	}
}
