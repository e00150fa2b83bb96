package events_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/internal/patching"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/events"
)

// runOwnEvents makes the passes over one object: each write is an event, and no other events occur.
func runOwnEvents(ctx context.Context, h *events.EventHandling, during time.Duration) {
	key := types.NamespacedName{Namespace: "ns", Name: "a"}
	version, waiting := 1, []events.RawEvent{{Type: events.Added, Object: newObject("a", "u1", 1)}}
	for until := time.Now().Add(during); time.Now().Before(until); {
		patch, wait := h.DeliverNext(ctx, key, waiting)
		waiting = nil
		time.Sleep(10 * time.Millisecond) // the duration of a request
		switch {
		case !patch.IsEmpty():
			version++
			body := map[string]any{"metadata": map[string]any{}}
			h.NoteWrite(ctx, key, body, patching.WriteResult{Versions: []string{fmt.Sprint(version)}, Body: body})
			waiting = []events.RawEvent{{Type: events.Modified, Object: newObject("a", "u1", version)}}
		case wait > 0:
			time.Sleep(wait)
		default:
			return // no pass follows
		}
	}
}

// TestDelayedEventsAreNotLost shows that a delayed event is delivered even if its delay ends before the pass does,
// because no other event would call the handler.
func TestDelayedEventsAreNotLost(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		slow   time.Duration // of the second handler
		third  int           // the calls of the third handler that write
	}{
		"Fast": {"an event is delivered if the pass ends before the delay", 0, 0},
		"Slow": {"an event is delivered if the delay ends while another handler runs", 3 * time.Second, 0},
		"Reset": {"an event is delivered if the third handler resets the loop, which ends the delay",
			3 * time.Second, 10},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				calls, thirds := 0, 0
				write := func(call *handlers.Invocation) error {
					return call.Writer.AddTransform(func(body map[string]any) error {
						body["data"] = fmt.Sprint(calls)
						return nil
					})
				}
				h := newEventHandling(
					newEventHandler("a", func(_ context.Context, call *handlers.Invocation) error {
						calls++
						return write(call)
					}),
					newEventHandler("b", func(context.Context, *handlers.Invocation) error {
						time.Sleep(tc.slow)
						return nil
					}),
					newEventHandler("c", func(_ context.Context, call *handlers.Invocation) error {
						if thirds++; thirds > tc.third {
							return nil
						}
						return write(call)
					}),
				)
				h.Loops = &events.Loops{}
				runOwnEvents(t.Context(), h, 30*time.Minute)
				if calls < 18 || calls > 50 {
					t.Errorf("%s: %d calls in 30 minutes, want about 20", tc.reason, calls)
				}
			})
		})
	}
}

// TestDeletionsAreNotDelayed shows that the deletion of an object reaches a handler that keeps changing the object,
// even if its own write has ended the deletion, and the deletion has the version of that write.
func TestDeletionsAreNotDelayed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		deletions := 0
		h := newEventHandling(newEventHandler("a", func(_ context.Context, call *handlers.Invocation) error {
			if call.Cause.EventType == events.Deleted {
				deletions++
			}
			return call.Writer.AddTransform(func(map[string]any) error { return nil })
		}))
		h.Loops = &events.Loops{}
		key, body := types.NamespacedName{Namespace: "ns", Name: "a"}, map[string]any{"metadata": map[string]any{}}
		for version := 1; ; version++ {
			changed := events.RawEvent{Type: events.Modified, Object: newObject("a", "u1", version)}
			h.DeliverNext(t.Context(), key, []events.RawEvent{changed})
			written := patching.WriteResult{Versions: []string{fmt.Sprint(version + 1)}, Body: body}
			if looping := h.NoteWrite(t.Context(), key, body, written); len(looping) > 0 {
				gone := events.RawEvent{Type: events.Deleted, Object: newObject("a", "u1", version+1)}
				h.DeliverNext(t.Context(), key, []events.RawEvent{gone})
				break
			}
		}
		if deletions != 1 {
			t.Errorf("the handler was called %d times for the deletion, want once", deletions)
		}
	})
}
