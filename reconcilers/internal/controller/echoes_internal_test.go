package controller

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/cause"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/compact"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/source"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
	"github.com/kopf-runtime/kopf-runtime/storage/diffbase"
)

// looks counts the essences that are built: one for each look at an object.
type looks struct {
	diffbase.Storage
	count *int
}

func (l looks) Build(body map[string]any, extra []diff.Path) (diffbase.Essence, error) {
	*l.count++
	return l.Storage.Build(body, extra)
}

// wantLooks expects that so many looks were taken since it was asked last.
func (w *world) wantLooks(when string, count *int, want int) {
	w.t.Helper()
	if *count != want {
		w.t.Errorf("%s: %d looks, want %d", when, *count, want)
	}
	*count = 0
}

// counted counts the looks of a world.
func (w *world) counted() *int {
	count := new(int)
	w.controller.changes.Lens.Diffbase = looks{w.controller.changes.Lens.Diffbase, count}
	return count
}

func TestEventsOfOurOwnWrites(t *testing.T) {
	tests := map[string]struct {
		reason string
		play   func(w *world, count *int)
	}{
		"Echo": {
			reason: "nothing is to be done for it, so nobody looks at it",
			play: func(w *world, count *int) {
				w.pass()
				w.wantLooks("the creation", count, 1)
				w.deliver()
				w.pass()
				w.wantLooks("its event", count, 0)
				w.wantForgotten("after its event")
				w.pass()
				w.wantLooks("no event", count, 1)
			},
		},
		"EchoDuringThePass": {
			reason: "its event is one of those that come while the pass is running",
			play: func(w *world, count *int) {
				w.controller.store = moving{w.cache, w.deliver, nothing}
				w.pass()
				w.wantLooks("the creation", count, 1)
				w.pass()
				w.wantLooks("its event", count, 0)
				w.wantForgotten("after its event")
			},
		},
		"EditedByOthers": {
			reason: "an event that is of both brings what the others have done",
			play: func(w *world, count *int) {
				w.pass()
				w.edit(`{"spec":{"size":2}}`)
				w.deliver()
				w.pass()
				w.wantLooks("both together", count, 2)
				w.wantCalls("both together", "c", "u")
				w.deliver()
				w.pass()
				w.wantLooks("the event of the update", count, 0)
			},
		},
		"EarlierEvents": {
			reason: "what the cache has had before our write comes to nothing, and our write is still to come",
			play: func(w *world, count *int) {
				w.pass()
				w.pass()
				w.wantLooks("the creation", count, 1)
				w.deliver()
				w.pass()
				w.wantLooks("its event", count, 0)
			},
		},
		"Woken": {
			reason: "whoever asks for a pass gets one, such as for what has ended in the background",
			play: func(w *world, count *int) {
				w.pass()
				w.deliver()
				w.controller.objects.Wake(request.NamespacedName)
				w.pass()
				w.wantLooks("the creation, and the pass that was asked for", count, 2)
				w.pass()
				w.wantLooks("nobody asks again", count, 1)
			},
		},
		"WokenDuringThePass": {
			reason: "the pass that is running may have looked before",
			play: func(w *world, count *int) {
				wake := func() { w.controller.objects.Wake(request.NamespacedName) }
				w.controller.store = moving{w.cache, w.deliver, wake}
				w.pass()
				w.controller.store = w.cache
				w.pass()
				w.wantLooks("the creation, and the pass that was asked for", count, 2)
			},
		},
		"NextRun": {
			reason: "what ran in the background is to be started again",
			play: func(w *world, count *int) {
				w.pass()
				w.deliver()
				w.controller.beginMemory()
				w.pass()
				w.wantLooks("the creation, and the listing", count, 2)
			},
		},
		"AnotherOne": {
			reason: "another object of the name is no echo, whatever its version",
			play: func(w *world, count *int) {
				w.pass()
				w.version--
				w.create("u2")
				w.deliver()
				w.pass()
				w.wantLooks("two creations", count, 2)
				w.wantCalls("two creations", "c", "c")
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			defer explain(t, tc.reason)
			w := newWorld(t, creating("c"), &handlers.Handler{ID: "u", Reason: cause.Update})
			tc.play(w, w.counted())
		})
	}
}

// The event of our own write asks for a pass only where somebody is to see it, or where it may be more than that.
func TestPassesForEvents(t *testing.T) {
	watching := func() *handlers.Handler { return &handlers.Handler{ID: "e", Family: handlers.Watching} }
	tests := map[string]struct {
		reason string
		more   []*handlers.Handler
		before func(w *world)
		event  string
		want   bool
	}{
		"Echo": {reason: "nothing is to be done", event: "MODIFIED"},
		"Earlier": {
			reason: "what was before our write was in the answer to it", event: "MODIFIED",
			before: func(w *world) { w.controller.Seen("MODIFIED", w.known()) },
		},
		"Observed": {
			reason: "handlers of events see all",
			more:   []*handlers.Handler{watching()}, event: "MODIFIED", want: true,
		},
		"Edited": {
			reason: "others have written after us",
			before: func(w *world) { w.edit(`{"spec":{"size":2}}`) }, event: "MODIFIED", want: true,
		},
		"Running": {
			reason: "the pass that is at work may come to something else, which is known at its end",
			before: func(w *world) { w.controller.objects.Take("u1") }, event: "MODIFIED",
		},
		"RunningObserved": {
			reason: "handlers of events see all, whatever the pass comes to",
			more:   []*handlers.Handler{watching()},
			before: func(w *world) { w.controller.objects.Take("u1") }, event: "MODIFIED", want: true,
		},
		"Deleted": {reason: "that it has gone is no echo", event: "DELETED", want: true},
		"NextRun": {
			reason: "the background begins anew",
			before: func(w *world) { w.controller.beginMemory() }, want: true,
		},
		"OnceAgain": {
			reason: "our write comes once",
			before: func(w *world) {
				w.deliver()
				w.controller.Seen("MODIFIED", w.known())
			}, event: "MODIFIED", want: true,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, append(tc.more, creating("c"))...)
			w.pass()
			if tc.before != nil {
				tc.before(w)
			}
			w.deliver()
			if pass := w.controller.Seen(tc.event, w.known()); pass != tc.want {
				t.Errorf("%s: got a pass: %v", tc.reason, pass)
			}
		})
	}
}

// What comes during a pass asks for the next one at its end, unless the pass has written it: its event may be here
// before the answer.
func TestPassesForEventsOfAPass(t *testing.T) {
	edited := func(patch string) func(w *world) {
		return func(w *world) {
			w.edit(patch)
			w.comes()
		}
	}
	change, deletion := source.PriorityChange, source.PriorityDeletion
	tests := map[string]struct {
		reason string
		during func(w *world) // what the handler of the creation lives to see
		wrote  func(w *world) // what is between its write and the answer
		want   *int           // the priority of what is asked for
	}{
		"Nothing": {reason: "nothing has come"},
		"Echo":    {reason: "it is our own write", wrote: (*world).comes},
		"Before":  {reason: "the answer to our write has it", during: edited(`{"status":{"seen":true}}`)},
		"Change":  {reason: "somebody is to handle it", during: edited(`{"spec":{"size":2}}`), want: &change},
		"ChangeAndEcho": {
			reason: "the echo comes with it", want: &change,
			during: edited(`{"spec":{"size":2}}`), wrote: (*world).comes,
		},
		"After": {reason: "it is not in the answer", wrote: edited(`{"spec":{"size":2}}`), want: &change},
		"Deletion": {
			reason: "it is to go", want: &deletion,
			during: edited(`{"metadata":{"deletionTimestamp":"2026-01-01T00:00:00Z","finalizers":["f"]}}`),
		},
		"Failure": {
			reason: "what is not written is kept, and the change is known",
			during: func(w *world) {
				edited(`{"spec":{"size":2}}`)(w)
				w.refuse = unavailable()
			},
			want: &change,
		},
		"Panic": {
			reason: "what has come is not forgotten when a pass breaks down",
			during: func(w *world) {
				edited(`{"spec":{"size":2}}`)(w)
				w.controller.store = nil
			},
			want: &change,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			defer explain(t, tc.reason)
			creating := creating("c")
			w := newWorld(t, creating, &handlers.Handler{ID: "u", Reason: cause.Update})
			waiting := w.queue()
			if tc.during != nil {
				creating.Call = func(context.Context, *handlers.Invocation) error { tc.during(w); return nil }
			}
			if tc.wrote != nil {
				w.wrote = func() { w.wrote = nil; tc.wrote(w) }
			}
			if _, _, err := w.controller.contained(t.Context(), request); (err != nil) != (name == "Panic") {
				t.Errorf("the pass ended with %v", err)
			}
			switch asked := waiting.Len(); {
			case tc.want == nil && asked > 0:
				t.Error("a pass is asked for")
			case tc.want != nil && asked == 0:
				t.Error("no pass is asked for")
			case tc.want != nil:
				if r, priority, _ := waiting.GetWithPriority(); r != request || priority != *tc.want {
					t.Errorf("asked for %v with priority %d, want %d", r, priority, *tc.want)
				}
			}
		})
	}
}

// An echo is not even decoded: of one that cannot be, nobody hears.
func TestEchoesAreNotDecoded(t *testing.T) {
	w := newWorld(t, creating("c"))
	w.pass()
	text := `{"metadata":{"namespace":"ns","name":"a","uid":"u1","resourceVersion":"2"},"spec":nul}`
	damaged, err := compact.New([]byte(text), metav1.TypeMeta{Kind: "Widget"})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.cache.Update(damaged); err != nil {
		t.Fatal(err)
	}
	if w.pass(); len(w.logged) > 0 {
		t.Errorf("the echo was decoded: %q", w.logged)
	}
	if w.pass(); len(w.logged) == 0 {
		t.Error("the object can be decoded: this test shows nothing")
	}
}

// A delayed attempt is an entry of the queue, which the event of the write before it must not swallow.
func TestEchoesBesideRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		flaky := creating("c")
		flaky.Call = func(context.Context, *handlers.Invocation) error { return errors.New("not yet") }
		backoff, once := 10*time.Second, 2
		flaky.Policy = handlers.Policy{Backoff: &backoff, Retries: &once}
		w := newWorld(t, flaky)
		w.wantAgain("the first attempt", 10*time.Second)
		w.deliver()
		w.wantAgain("its event", 10*time.Second)
		time.Sleep(10 * time.Second)
		w.pass()
		w.wantCalls("the second attempt", "c", "c")
	})
}
