package events_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/compact"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/internal/patching"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/events"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/kind"
	"github.com/kopf-runtime/kopf-runtime/test/kits/compacttest"
)

func newObject(name, uid string, version int) *compact.CachedObject {
	return compacttest.NewObject(map[string]any{"spec": map[string]any{}, "metadata": map[string]any{
		"namespace": "ns", "name": name, "uid": uid, "resourceVersion": fmt.Sprint(version),
	}})
}

func eventTexts(list []events.RawEvent) (all []string) {
	for _, e := range list {
		all = append(all, e.Type+" "+string(e.Object.GetUID())+"@"+e.Object.GetResourceVersion())
	}
	return all
}

func TestQueueKeepsTheOrder(t *testing.T) {
	var q events.Queue
	for i, kind := range []string{events.Added, events.Modified, events.Deleted} {
		q.Add(events.RawEvent{Type: kind, Object: newObject("a", "u1", i)})
	}
	q.Add(events.RawEvent{Type: events.Added, Object: newObject("b", "u2", 7)})
	q.Add(events.RawEvent{Type: events.Added, Object: newObject("a", "u3", 8)})
	key := types.NamespacedName{Namespace: "ns", Name: "a"}
	want := []string{"ADDED u1@0", "MODIFIED u1@1", "DELETED u1@2", "ADDED u3@8"}
	if d := cmp.Diff(want, eventTexts(q.TakeAll(key))); d != "" {
		t.Errorf("want the events of the old object before those of the new one: -want, +got:\n%s", d)
	}
	if left := q.TakeAll(key); left != nil {
		t.Errorf("want nothing after the events were taken, got %v", eventTexts(left))
	}
}

func TestQueueIsBounded(t *testing.T) {
	var q events.Queue
	dropped := 0
	add := func(kind string, version int) {
		if q.Add(events.RawEvent{Type: kind, Object: newObject("a", "u1", version)}) {
			dropped++
		}
	}
	add(events.Added, 0)
	for i := range events.MaxPendingEvents + 9 {
		add(events.Modified, i+1)
	}
	add(events.Deleted, 1000)
	got := eventTexts(q.TakeAll(types.NamespacedName{Namespace: "ns", Name: "a"}))
	if len(got) != events.MaxPendingEvents || dropped != 11 {
		t.Errorf("got %d events, %d dropped, want %d and 11", len(got), dropped, events.MaxPendingEvents)
	}
	if got[0] != "ADDED u1@0" || got[1] != "MODIFIED u1@12" || got[len(got)-1] != "DELETED u1@1000" {
		t.Errorf(
			"want the first and the last event, without the oldest changes, got %s, %s … %s",
			got[0], got[1], got[len(got)-1],
		)
	}
}

// newEventHandler returns an event handler.
func newEventHandler(id string, call handlers.Func, filters ...handlers.Filter) *handlers.Handler {
	return &handlers.Handler{ID: id, Family: handlers.Watching, Call: call, Filters: filters}
}

func newEventHandling(all ...*handlers.Handler) *events.EventHandling {
	h := &events.EventHandling{}
	for _, one := range all {
		h.Handlers = append(h.Handlers, adapters.New(one, nil))
	}
	return h
}

func TestDeliverGoesOn(t *testing.T) {
	var seen []string
	note := func(id string, err error) handlers.Func {
		return func(_ context.Context, call *handlers.Invocation) error {
			seen = append(seen, id+" "+call.Cause.EventType)
			return err
		}
	}
	h := newEventHandling(
		newEventHandler("failing", note("failing", errors.New("of no consequence"))),
		newEventHandler("panicking", func(context.Context,
			*handlers.Invocation) error {
			panic("the roof is on fire")
		}),
		newEventHandler(
			"unasked", note("unasked", nil), func(context.Context, *cause.Cause) (bool, error) { return false, nil },
		),
		newEventHandler(
			"misfiltered", note("misfiltered", nil),
			func(context.Context, *cause.Cause) (bool, error) { return true, errors.New("broken") },
		),
		newEventHandler("last", note("last", nil)),
	)
	h.DeliverEvents(
		t.Context(), []events.RawEvent{{events.Listed, newObject("a", "u1", 1)},
			{events.Deleted, newObject("a", "u1", 2)}},
	)
	if d := cmp.Diff([]string{"failing ", "last ", "failing DELETED", "last DELETED"}, seen); d != "" {
		t.Errorf("want all other handlers called despite failures: -want, +got:\n%s", d)
	}
}

func TestDeliverCollectsWhatIsWritten(t *testing.T) {
	writing := newEventHandler("w", func(_ context.Context, call *handlers.Invocation) error {
		return errors.Join(call.Writer.SetResult(call.Cause.EventType),
			call.Writer.AddTransform(func(body map[string]any) error {
				body["data"] = call.Cause.EventType
				return nil
			}))
	})
	apply := func(list ...events.RawEvent) map[string]any {
		patch := newEventHandling(writing).DeliverEvents(t.Context(), list)
		changed, err := patch.ApplyTo(map[string]any{})
		if err != nil {
			t.Fatal(err)
		}
		return changed
	}
	added, modified, deleted := events.RawEvent{events.Added, newObject("a", "u1", 1)}, events.RawEvent{
		events.Modified, newObject("a", "u1", 2),
	}, events.RawEvent{events.Deleted, newObject("a", "u1", 3)}
	if d := cmp.Diff(
		map[string]any{"data": "MODIFIED", "status": map[string]any{"w": "MODIFIED"}}, apply(added, modified),
	); d != "" {
		t.Errorf("want the values of the last event: -want, +got:\n%s", d)
	}
	if d := cmp.Diff(map[string]any{}, apply(added, modified, deleted)); d != "" {
		t.Errorf("want no changes for a deleted object: -want, +got:\n%s", d)
	}
}

func TestDeliverDropsWhatDoesNotFit(t *testing.T) {
	sets := func(key string, err error) handlers.Func {
		return func(_ context.Context, call *handlers.Invocation) error {
			seen := 0
			return call.Writer.AddTransform(func(body map[string]any) error {
				if seen++; seen > 1 && err != nil { // it worked on the working copy
					return err
				}
				body[key] = true
				return nil
			})
		}
	}
	h := newEventHandling(
		newEventHandler("a", sets("a", nil)), newEventHandler("picky", sets("x", errors.New("not any more"))),
		newEventHandler("b", sets("b", nil)),
	)
	var lines []string
	log := funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{})
	patch := h.DeliverEvents(
		logf.IntoContext(t.Context(), log), []events.RawEvent{{events.Added, newObject("a", "u1", 1)}},
	)
	changed, err := patch.ApplyTo(map[string]any{})
	if d := cmp.Diff(map[string]any{"a": true, "b": true}, changed); d != "" || err != nil {
		t.Errorf("want the changes of the other handlers: error %v, -want, +got:\n%s", err, d)
	}
	if all := strings.Join(lines, "\n"); !strings.Contains(all, "not any more") ||
		!strings.Contains(all, `"handler"="picky"`) {
		t.Errorf("the handler of the failed patch is not logged: %s", all)
	}
}

// refusingWriter is an API server that refuses all writes.
type refusingWriter struct {
	kind.Writer
	writeCount int
}

func (r *refusingWriter) ApplyRetrying(
	context.Context, patching.Target, patching.Patch,
) (patching.WriteResult, error) {
	r.writeCount++
	return patching.WriteResult{}, errors.New("not now")
}

func TestWriteIsTriedOnce(t *testing.T) {
	server := &refusingWriter{}
	h := newEventHandling()
	h.Writer = server
	h.WriteChanges(t.Context(), map[string]any{}, patching.Patch{})
	if server.writeCount != 0 {
		t.Errorf("want no request without changes, got %d", server.writeCount)
	}
	h.WriteChanges(t.Context(), map[string]any{}, patching.Patch{Merge: map[string]any{"a": "b"}})
	if server.writeCount != 1 {
		t.Errorf("want one request without a retry, got %d", server.writeCount)
	}
}

func TestQueueDropsTheVeryFirst(t *testing.T) {
	var q events.Queue
	dropped := 0
	for i := range events.MaxPendingEvents + 1 {
		if q.Add(events.RawEvent{Type: events.Modified, Object: newObject("a", "u1", i)}) {
			dropped++
		}
	}
	got := eventTexts(q.TakeAll(types.NamespacedName{Namespace: "ns", Name: "a"}))
	if dropped != 1 || got[0] != "MODIFIED u1@1" {
		t.Errorf("got %d dropped, and %s first", dropped, got[0])
	}
}

// TestDeliverStops shows that no handler is called during a pause or after the exit, and that the events of a
// successor are delivered.
func TestDeliverStops(t *testing.T) {
	all := []events.RawEvent{
		{events.Deleted, newObject("a", "u1", 1)}, {events.Added, newObject("a", "u2", 2)},
	}
	for name, tc := range map[string]struct {
		reason string
		ended  bool
		calls  int // after which the operator is paused
		want   []string
	}{
		"Open": {
			"events after a deletion are delivered for the new object", false, 9,
			[]string{"one DELETED", "two DELETED", "one ADDED", "two ADDED"},
		},
		"Paused":  {"no handler is called in a pause", false, 0, nil},
		"Pausing": {"no further handler is called after a pause has begun", false, 1, []string{"one DELETED"}},
		"Ended":   {"no handler is called after the exit", true, 9, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var seen []string
			note := func(id string) handlers.Func {
				return func(_ context.Context, call *handlers.Invocation) error {
					seen = append(seen, id+" "+call.Cause.EventType)
					return nil
				}
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if tc.ended {
				cancel()
			}
			h := newEventHandling(newEventHandler("one", note("one")), newEventHandler("two", note("two")))
			h.Gate = gate(func() bool { return len(seen) < tc.calls })
			h.DeliverEvents(ctx, all)
			if d := cmp.Diff(tc.want, seen); d != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, d)
			}
		})
	}
}

func TestFiltersKnowOfDeletions(t *testing.T) {
	var deleting []bool
	h := newEventHandling(newEventHandler("one", func(context.Context, *handlers.Invocation) error { return nil },
		func(_ context.Context, c *cause.Cause) (bool, error) {
			deleting = append(deleting, c.Deleting)
			return true, nil
		}))
	going := compacttest.DeletingCopy(newObject("a", "u1", 2))
	h.DeliverEvents(t.Context(), []events.RawEvent{{events.Added, newObject("a", "u1", 1)}, {events.Modified, going}})
	if d := cmp.Diff([]bool{false, true}, deleting); d != "" {
		t.Errorf("-want, +got:\n%s", d)
	}
}

// acceptingWriter is an API server that accepts all writes.
type acceptingWriter struct{ kind.Writer }

func (acceptingWriter) ApplyRetrying(
	context.Context, patching.Target, patching.Patch,
) (patching.WriteResult, error) {
	return patching.WriteResult{}, nil
}

// TestOnlyLostChangesAreLogged shows that only lost changes are logged as errors.
func TestOnlyLostChangesAreLogged(t *testing.T) {
	failures := 0
	log := funcr.New(func(_, line string) {
		if strings.Contains(line, `"error"=`) {
			failures++
		}
	}, funcr.Options{})
	ctx := logf.IntoContext(t.Context(), log)
	h := newEventHandling(newEventHandler("one", func(_ context.Context, call *handlers.Invocation) error {
		return call.Writer.SetResult("fine")
	}))
	h.Writer = acceptingWriter{}
	h.WriteChanges(ctx, map[string]any{}, h.DeliverEvents(ctx,
		[]events.RawEvent{{events.Added, newObject("a", "u1", 1)}}))
	if failures != 0 {
		t.Errorf("want no error in the log after a success, got %d", failures)
	}
	h.Writer = &refusingWriter{}
	h.WriteChanges(ctx, map[string]any{}, h.DeliverEvents(ctx,
		[]events.RawEvent{{events.Added, newObject("a", "u1", 1)}}))
	if failures != 1 {
		t.Errorf("want only the error of the write in the log, got %d", failures)
	}
}

// gate is open as long as it returns true.
type gate func() bool

func (g gate) Open() bool  { return g() }
func (g gate) Enter() bool { return g() }
func (gate) Leave()        {}
