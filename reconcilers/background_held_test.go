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
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers"
)

const heldFinalizer = "coming.example.org/finalizer"

// heldObject holds one object, and records when background functions start.
type heldObject struct {
	directClient
	connection *memapi.Connection
	gate       *reconcilers.Gate

	mu           sync.Mutex
	startTime    time.Time
	startRecords []string
	patches      int
}

// begin returns a function that records its first call, and whether the object has no finalizer at that time.
func (w *heldObject) begin(id string) handlers.Func {
	first := true
	return func(context.Context, *handlers.Invocation) error {
		w.mu.Lock()
		defer w.mu.Unlock()
		if first {
			line := fmt.Sprintf("%s %s", time.Since(w.startTime).Truncate(time.Second), id)
			if !slices.Contains(w.get("ConfigMap", "c").GetFinalizers(), heldFinalizer) {
				line += ", not held"
			}
			w.startRecords = append(w.startRecords, line)
		}
		first = false
		return nil
	}
}

// delayPatches delays each patch, and makes the first ones fail.
func (w *heldObject) delayPatches(wait time.Duration, failures int) {
	w.connection.Before = func(_ context.Context, r memapi.Request) error {
		if r.Verb != "patch" {
			return nil
		}
		time.Sleep(wait)
		if w.patches++; w.patches <= failures {
			return memapi.NewRefusal(403)
		}
		return nil
	}
}

// TestBackgroundWaitsForTheFinalizer shows that no background function starts before the object has the finalizer:
// after a crash and a deletion, the results of the function would remain (deviation D-daemon-held).
func TestBackgroundWaitsForTheFinalizer(t *testing.T) {
	never := 1 << 30
	for name, tc := range map[string]struct {
		reason string
		play   func(w *heldObject)
		want   []string
	}{
		"SlowWrite": {
			"the functions wait for the answer to the write", func(w *heldObject) { w.delayPatches(5*time.Second, 0) },
			[]string{"5s d", "5s t"},
		},
		"RefusedAtFirst": {
			"the functions wait for the successful write, after delays of 1, 1 and 2 seconds",
			func(w *heldObject) { w.delayPatches(0, 3) }, []string{"4s d", "4s t"},
		},
		"Forbidden": {
			"if the finalizer cannot be added, no function starts", func(w *heldObject) { w.delayPatches(0, never) },
			nil,
		},
		"LostAnswer": {
			"after a lost answer, the functions wait until the object is read again",
			func(w *heldObject) {
				lost := false
				w.connection.After = func(_ context.Context, r memapi.Request) error {
					if r.Verb == "patch" && !lost {
						lost = true
						return errors.New("connection lost")
					}
					return nil
				}
			}, []string{"1s d", "1s t"},
		},
		"HeldFromTheBeginning": {
			"an object with the finalizer needs no write",
			func(w *heldObject) {
				w.delayPatches(0, never)
				w.merge("ConfigMap", "c", `{"metadata":{"finalizers":["`+heldFinalizer+`"]}}`)
			}, []string{"0s d", "0s t"},
		},
		"ClosedGate": {
			"a paused operator adds no finalizer, so no function starts before it is resumed",
			func(w *heldObject) {
				w.gate.Set(true)
				time.AfterFunc(20*time.Second, func() { w.gate.Set(false) })
			}, []string{"20s d", "20s t"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := memapi.New()
				w := &heldObject{
					directClient: newDirectClient(t, server), connection: server.Connect(), gate: &reconcilers.Gate{},
					startTime: time.Now(),
				}
				w.create("ConfigMap", "c")
				tc.play(w)
				stop := operateAll(t, w.connection, reconcilers.Options{Gate: w.gate},
					registrationFor(t, "configmaps", daemon("d", handlers.BackgroundOptions{}, w.begin("d"))),
					registrationFor(t, "configmaps", timer("t", time.Minute, w.begin("t"))))
				time.Sleep(10 * time.Minute)
				stop()
				slices.Sort(w.startRecords)
				if d := cmp.Diff(tc.want, w.startRecords); d != "" {
					t.Errorf("%s: -want, +got:\n%s", tc.reason, d)
				}
			})
		})
	}
}
