package controller

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/compact"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/source"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
	"github.com/kopf-runtime/kopf-runtime/storage/diffbase"
)

// countingDiffbase counts how often an essence is built, which is once for each evaluation of an object.
type countingDiffbase struct {
	diffbase.Storage
	count *int
}

func (l countingDiffbase) Build(body map[string]any, extra []diff.Path) (diffbase.Essence, error) {
	*l.count++
	return l.Storage.Build(body, extra)
}

// requireEvaluations checks the number of evaluations since the last check, and resets the counter.
func (w *objectFixture) requireEvaluations(when string, count *int, want int) {
	w.t.Helper()
	if *count != want {
		w.t.Errorf("%s: %d evaluations, want %d", when, *count, want)
	}
	*count = 0
}

// countEvaluations installs the counter of evaluations and returns it.
func (w *objectFixture) countEvaluations() *int {
	count := new(int)
	w.controller.changes.Lens.Diffbase = countingDiffbase{w.controller.changes.Lens.Diffbase, count}
	return count
}

// TestEventsOfOurOwnWrites shows that the event of an own write does not evaluate the object again, unless there is
// another cause for a pass.
func TestEventsOfOurOwnWrites(t *testing.T) {
	tests := map[string]struct {
		reason string
		play   func(w *objectFixture, count *int)
	}{
		"Echo": {
			reason: "the event of an own write does not evaluate the object",
			play: func(w *objectFixture, count *int) {
				w.pass()
				w.requireEvaluations("the creation", count, 1)
				w.updateCache()
				w.pass()
				w.requireEvaluations("the event of the creation", count, 0)
				w.requireForgotten("after its event")
				w.pass()
				w.requireEvaluations("a pass without an event", count, 1)
			},
		},
		"EchoDuringThePass": {
			reason: "an own write whose event arrives during the pass is not evaluated again",
			play: func(w *objectFixture, count *int) {
				w.controller.store = changingStore{w.cache, w.updateCache, nothing}
				w.pass()
				w.requireEvaluations("the creation", count, 1)
				w.pass()
				w.requireEvaluations("the event of the creation", count, 0)
				w.requireForgotten("after its event")
			},
		},
		"EditedByOthers": {
			reason: "an event that includes an edit by others is evaluated",
			play: func(w *objectFixture, count *int) {
				w.pass()
				w.edit(`{"spec":{"size":2}}`)
				w.updateCache()
				w.pass()
				w.requireEvaluations("both together", count, 2)
				w.requireCalls("both together", "c", "u")
				w.updateCache()
				w.pass()
				w.requireEvaluations("the event of the update", count, 0)
			},
		},
		"EarlierEvents": {
			reason: "events from before an own write are not evaluated, and its echo is still expected",
			play: func(w *objectFixture, count *int) {
				w.pass()
				w.pass()
				w.requireEvaluations("the creation", count, 1)
				w.updateCache()
				w.pass()
				w.requireEvaluations("the event of the creation", count, 0)
			},
		},
		"Woken": {
			reason: "a requested pass runs, for example after a background handler ended",
			play: func(w *objectFixture, count *int) {
				w.pass()
				w.updateCache()
				w.controller.objects.RequestPass(request.NamespacedName)
				w.pass()
				w.requireEvaluations("the creation and the requested pass", count, 2)
				w.pass()
				w.requireEvaluations("a pass without a further request", count, 1)
			},
		},
		"WokenDuringThePass": {
			reason: "a pass that is requested during another pass runs after it",
			play: func(w *objectFixture, count *int) {
				wake := func() { w.controller.objects.RequestPass(request.NamespacedName) }
				w.controller.store = changingStore{w.cache, w.updateCache, wake}
				w.pass()
				w.controller.store = w.cache
				w.pass()
				w.requireEvaluations("the creation and the requested pass", count, 2)
			},
		},
		"NextRun": {
			reason: "a new run evaluates every object, to restart its background handlers",
			play: func(w *objectFixture, count *int) {
				w.pass()
				w.updateCache()
				w.controller.beginMemory()
				w.pass()
				w.requireEvaluations("the creation and the new listing", count, 2)
			},
		},
		"AnotherOne": {
			reason: "an event of another object with the same name is not an echo",
			play: func(w *objectFixture, count *int) {
				w.pass()
				w.version--
				w.create("u2")
				w.updateCache()
				w.pass()
				w.requireEvaluations("two creations", count, 2)
				w.requireCalls("two creations", "c", "c")
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			defer explain(t, tc.reason)
			w := newObjectFixture(t, newCreateHandler("c"), &handlers.Handler{ID: "u", Reason: cause.Update})
			tc.play(w, w.countEvaluations())
		})
	}
}

// TestPassesForEvents shows that the event of an own write requests a pass only if an event handler must see it, or if
// it may contain changes by others.
func TestPassesForEvents(t *testing.T) {
	watching := func() *handlers.Handler { return &handlers.Handler{ID: "e", Family: handlers.Watching} }
	tests := map[string]struct {
		reason string
		more   []*handlers.Handler
		before func(w *objectFixture)
		event  string
		want   bool
	}{
		"Echo": {reason: "an echo requests no pass", event: "MODIFIED"},
		"Earlier": {
			reason: "an event from before an own write requests no pass", event: "MODIFIED",
			before: func(w *objectFixture) { w.controller.NoteEvent("MODIFIED", w.cached()) },
		},
		"Observed": {
			reason: "event handlers get every event, including echoes",
			more:   []*handlers.Handler{watching()}, event: "MODIFIED", want: true,
		},
		"Edited": {
			reason: "an event with a later write by others requests a pass",
			before: func(w *objectFixture) { w.edit(`{"spec":{"size":2}}`) }, event: "MODIFIED", want: true,
		},
		"Running": {
			reason: "an event during a pass is decided at the end of that pass",
			before: func(w *objectFixture) { w.controller.objects.BeginPass("u1") }, event: "MODIFIED",
		},
		"RunningObserved": {
			reason: "event handlers get every event, also during a pass",
			more:   []*handlers.Handler{watching()},
			before: func(w *objectFixture) { w.controller.objects.BeginPass("u1") }, event: "MODIFIED", want: true,
		},
		"Deleted": {reason: "a deletion is never an echo", event: "DELETED", want: true},
		"NextRun": {
			reason: "a new run requests a pass, as background handlers start again",
			before: func(w *objectFixture) { w.controller.beginMemory() }, want: true,
		},
		"OnceAgain": {
			reason: "only the first event of an own write is an echo",
			before: func(w *objectFixture) {
				w.updateCache()
				w.controller.NoteEvent("MODIFIED", w.cached())
			}, event: "MODIFIED", want: true,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := newObjectFixture(t, append(tc.more, newCreateHandler("c"))...)
			w.pass()
			if tc.before != nil {
				tc.before(w)
			}
			w.updateCache()
			if pass := w.controller.NoteEvent(tc.event, w.cached()); pass != tc.want {
				t.Errorf("%s: a pass is requested: %v", tc.reason, pass)
			}
		})
	}
}

// TestPassesForEventsOfAPass shows that an event during a pass requests the next one at its end, unless the pass has
// written that state itself. The event of a write can arrive before the response of the API server.
func TestPassesForEventsOfAPass(t *testing.T) {
	edited := func(patch string) func(w *objectFixture) {
		return func(w *objectFixture) {
			w.edit(patch)
			w.updateCacheWithEvent()
		}
	}
	change, deletion := source.PriorityChange, source.PriorityDeletion
	tests := map[string]struct {
		reason string
		during func(w *objectFixture) // runs while the create handler runs
		wrote  func(w *objectFixture) // runs between the write and its response
		want   *int                   // the priority of the requested pass
	}{
		"Nothing": {reason: "without an event no pass is requested"},
		"Echo": {reason: "an echo before the response requests no pass",
			wrote: (*objectFixture).updateCacheWithEvent},
		"Before": {reason: "an edit that is part of the response requests no pass",
			during: edited(`{"status":{"seen":true}}`)},
		"Change": {reason: "a change that needs a handler requests a pass",
			during: edited(`{"spec":{"size":2}}`), want: &change},
		"ChangeAndEcho": {
			reason: "an echo that includes a change by others requests a pass", want: &change,
			during: edited(`{"spec":{"size":2}}`), wrote: (*objectFixture).updateCacheWithEvent,
		},
		"After": {reason: "an edit that is not part of the response requests a pass",
			wrote: edited(`{"spec":{"size":2}}`), want: &change},
		"Deletion": {
			reason: "a deletion requests a pass with its own priority", want: &deletion,
			during: edited(`{"metadata":{"deletionTimestamp":"2026-01-01T00:00:00Z","finalizers":["f"]}}`),
		},
		"Failure": {
			reason: "a failed write does not lose a change that arrived during the pass",
			during: func(w *objectFixture) {
				edited(`{"spec":{"size":2}}`)(w)
				w.writeErr = unavailable()
			},
			want: &change,
		},
		"Panic": {
			reason: "a panic does not lose a change that arrived during the pass",
			during: func(w *objectFixture) {
				edited(`{"spec":{"size":2}}`)(w)
				w.controller.store = nil
			},
			want: &change,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			defer explain(t, tc.reason)
			creating := newCreateHandler("c")
			w := newObjectFixture(t, creating, &handlers.Handler{ID: "u", Reason: cause.Update})
			waiting := w.queue()
			if tc.during != nil {
				creating.Call = func(context.Context, *handlers.Invocation) error { tc.during(w); return nil }
			}
			if tc.wrote != nil {
				w.afterWrite = func() { w.afterWrite = nil; tc.wrote(w) }
			}
			_, _, err := w.controller.runRequestSafely(t.Context(), request, false)
			if (err != nil) != (name == "Panic") {
				t.Errorf("the pass ended with %v", err)
			}
			switch asked := waiting.Len(); {
			case tc.want == nil && asked > 0:
				t.Error("a pass is requested")
			case tc.want != nil && asked == 0:
				t.Error("no pass is requested")
			case tc.want != nil:
				if r, priority, _ := waiting.GetWithPriority(); r != request || priority != *tc.want {
					t.Errorf("requested %v with priority %d, want %d", r, priority, *tc.want)
				}
			}
		})
	}
}

// TestEchoesAreNotDecoded shows that an echo is not decoded: a damaged one is not reported.
func TestEchoesAreNotDecoded(t *testing.T) {
	w := newObjectFixture(t, newCreateHandler("c"))
	w.pass()
	text := `{"metadata":{"namespace":"ns","name":"a","uid":"u1","resourceVersion":"2"},"spec":nul}`
	damaged, err := compact.New([]byte(text), metav1.TypeMeta{Kind: "Widget"})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.cache.Update(damaged); err != nil {
		t.Fatal(err)
	}
	if w.pass(); len(w.logLines) > 0 {
		t.Errorf("the echo was decoded: %q", w.logLines)
	}
	if w.pass(); len(w.logLines) == 0 {
		t.Error("the object can be decoded, so this test shows nothing")
	}
}

// TestEchoesBesideRetries shows that the event of a write does not remove the queued next attempt.
func TestEchoesBesideRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		flaky := newCreateHandler("c")
		flaky.Call = func(context.Context, *handlers.Invocation) error { return errors.New("not yet") }
		backoff, once := 10*time.Second, 2
		flaky.Policy = handlers.Policy{Backoff: &backoff, Retries: &once}
		w := newObjectFixture(t, flaky)
		w.requireRequeue("the first attempt", 10*time.Second)
		w.updateCache()
		w.requireRequeue("the event of its write", 10*time.Second)
		time.Sleep(10 * time.Second)
		w.pass()
		w.requireCalls("the second attempt", "c", "c")
	})
}
