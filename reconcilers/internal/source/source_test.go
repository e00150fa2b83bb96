package source_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/compact/compacttest"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/source"
)

// watcher notes what it is told; and how long the queue was then, for it is to be told before.
type watcher struct {
	queue  source.Queue
	told   []string
	seen   []string
	enough string // the version for which no pass is needed
}

func (w *watcher) Listed(obj source.Object)  { w.note("listed", obj) }
func (w *watcher) Deleted(obj source.Object) { w.note("deleted", obj) }

func (w *watcher) Seen(kind string, obj source.Object) (pass bool) {
	w.seen = append(
		w.seen, fmt.Sprintf("%s %s@%s, %d queued", kind, obj.GetUID(), obj.GetResourceVersion(), w.queue.Len()),
	)
	return obj.GetResourceVersion() != w.enough
}

func (w *watcher) note(what string, obj source.Object) {
	w.told = append(w.told, fmt.Sprintf("%s %s/%s %s@%s, %d queued", what, obj.GetNamespace(), obj.GetName(),
		obj.GetUID(),
		obj.GetResourceVersion(), w.queue.Len()))
}

func objectOf(name, uid, version string) source.Object {
	return compacttest.Of(map[string]any{"metadata": map[string]any{
		"namespace": "ns", "name": name, "uid": uid, "resourceVersion": version,
	}})
}

// request is one that came out of the queue.
type request struct {
	Key      string
	Handler  string
	Priority int
}

func newQueue(t *testing.T) priorityqueue.PriorityQueue[source.Request] {
	t.Helper()
	queue := priorityqueue.New[source.Request](t.Name())
	t.Cleanup(queue.ShutDown)
	return queue
}

// drain takes out all that is in the queue. Additions are flushed by whoever asks, so the length can be relied on.
func drain(t *testing.T, queue priorityqueue.PriorityQueue[source.Request]) []request {
	t.Helper()
	var all []request
	for queue.Len() > 0 {
		r, priority, shutdown := queue.GetWithPriority()
		if shutdown {
			t.Fatal("the queue is shut down")
		}
		all = append(all, request{r.String(), r.Handler, priority})
		queue.Done(r)
	}
	return all
}

func TestEvents(t *testing.T) {
	v1 := func() source.Object { return objectOf("a", "u1", "1") }
	tests := map[string]struct {
		reason string
		send   func(ctx context.Context, e source.Events, q source.Queue)
		told   []string
		queued []request
	}{
		"Resync": {
			reason: "an object that did not change is looked at last, and told to nobody",
			queued: []request{{"ns/a", "", source.PriorityResume}},
			send: func(ctx context.Context, e source.Events, q source.Queue) {
				e.Update(ctx, event.TypedUpdateEvent[source.Object]{ObjectOld: v1(), ObjectNew: v1()}, q)
			},
		},
		"NoPassNeeded": {
			reason: "what the watcher needs no pass for is told to it, and not queued",
			send: func(ctx context.Context, e source.Events, q source.Queue) {
				e.Create(ctx, event.TypedCreateEvent[source.Object]{Object: objectOf("a", "u1", "enough")}, q)
				e.Update(ctx, event.TypedUpdateEvent[source.Object]{
					ObjectOld: v1(), ObjectNew: objectOf("a", "u1", "enough"),
				}, q)
			},
		},
		"DeletionAnyway": {
			reason: "handlers may have to be told of the end, and of another object in its place",
			send: func(ctx context.Context, e source.Events, q source.Queue) {
				e.Delete(ctx, event.TypedDeleteEvent[source.Object]{Object: objectOf("a", "u1", "enough")}, q)
				e.Update(ctx, event.TypedUpdateEvent[source.Object]{
					ObjectOld: objectOf("b", "u1", "1"), ObjectNew: objectOf("b", "u2", "enough"),
				}, q)
			},
			told: []string{"deleted ns/a u1@enough, 0 queued", "deleted ns/b u1@1, 1 queued"},
			queued: []request{
				{"ns/a", "", source.PriorityDeletion}, {"ns/b", "", source.PriorityChange},
			},
		},
		"Generic": {
			reason: "informers have no such events",
			send: func(ctx context.Context, e source.Events, q source.Queue) {
				e.Generic(ctx, event.TypedGenericEvent[source.Object]{Object: v1()}, q)
			},
		},
		"Replaced": {
			reason: "another uid in an update means that a deletion was missed: first the end of the one is noted, " +
				"then the other is looked at",
			send: func(ctx context.Context, e source.Events, q source.Queue) {
				e.Update(
					ctx, event.TypedUpdateEvent[source.Object]{ObjectOld: v1(), ObjectNew: objectOf("a", "u2", "9")}, q,
				)
			},
			told: []string{"deleted ns/a u1@1, 0 queued"}, queued: []request{{"ns/a", "", source.PriorityChange}},
		},
		"ReplacedAtTheSameVersion": {
			reason: "versions of two objects have nothing to do with one another",
			send: func(ctx context.Context, e source.Events, q source.Queue) {
				e.Update(
					ctx, event.TypedUpdateEvent[source.Object]{ObjectOld: v1(), ObjectNew: objectOf("a", "u2", "1")}, q,
				)
			},
			told: []string{"deleted ns/a u1@1, 0 queued"}, queued: []request{{"ns/a", "", source.PriorityChange}},
		},
		"Deleted": {
			reason: "the last known state is noted before the object is looked at",
			send: func(ctx context.Context, e source.Events, q source.Queue) {
				e.Delete(ctx, event.TypedDeleteEvent[source.Object]{Object: v1()}, q)
			},
			told: []string{"deleted ns/a u1@1, 0 queued"}, queued: []request{{"ns/a", "", source.PriorityDeletion}},
		},
		"Listed": {
			reason: "what was there before is noted, and may wait",
			send: func(ctx context.Context, e source.Events, q source.Queue) {
				e.Create(ctx, event.TypedCreateEvent[source.Object]{Object: v1(), IsInInitialList: true}, q)
			},
			told: []string{"listed ns/a u1@1, 0 queued"}, queued: []request{{"ns/a", "", source.PriorityResume}},
		},
		"ListedDeleting": {
			reason: "but not a deletion that waits since before the start: it has places of its own",
			send: func(ctx context.Context, e source.Events, q source.Queue) {
				obj := compacttest.Deleting(v1())
				e.Create(ctx, event.TypedCreateEvent[source.Object]{Object: obj, IsInInitialList: true}, q)
			},
			told: []string{"listed ns/a u1@1, 0 queued"}, queued: []request{{"ns/a", "", source.PriorityDeletion}},
		},
		"ListedThenChanged": {
			reason: "a change of an object that waits lifts it to the changes; it is looked at once",
			send: func(ctx context.Context, e source.Events, q source.Queue) {
				e.Create(ctx, event.TypedCreateEvent[source.Object]{Object: v1(), IsInInitialList: true}, q)
				e.Update(
					ctx, event.TypedUpdateEvent[source.Object]{ObjectOld: v1(), ObjectNew: objectOf("a", "u1", "2")}, q,
				)
			},
			told: []string{"listed ns/a u1@1, 0 queued"}, queued: []request{{"ns/a", "", source.PriorityChange}},
		},
		"ChangedThenDeleting": {
			reason: "so does a deletion",
			send: func(ctx context.Context, e source.Events, q source.Queue) {
				e.Create(ctx, event.TypedCreateEvent[source.Object]{Object: v1()}, q)
				e.Update(
					ctx,
					event.TypedUpdateEvent[source.Object]{
						ObjectOld: v1(), ObjectNew: compacttest.Deleting(objectOf("a", "u1", "2")),
					},
					q,
				)
			},
			queued: []request{{"ns/a", "", source.PriorityDeletion}},
		},
		"Created": {
			reason: "a new object is a change", send: func(ctx context.Context, e source.Events, q source.Queue) {
				e.Create(ctx, event.TypedCreateEvent[source.Object]{Object: v1()}, q)
			},
			queued: []request{{"ns/a", "", source.PriorityChange}},
		},
		"CreatedDeleting": {
			reason: "one that comes into sight while it is being deleted is a deletion",
			send: func(ctx context.Context, e source.Events, q source.Queue) {
				e.Create(ctx, event.TypedCreateEvent[source.Object]{Object: compacttest.Deleting(v1())}, q)
			},
			queued: []request{{"ns/a", "", source.PriorityDeletion}},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			queue := newQueue(t)
			w := &watcher{queue: queue, enough: "enough"}
			tc.send(t.Context(), source.Events{Watcher: w}, queue)
			if d := cmp.Diff(tc.told, w.told); d != "" {
				t.Errorf("%s: told -want, +got:\n%s", tc.reason, d)
			}
			if d := cmp.Diff(tc.queued, drain(t, queue)); d != "" {
				t.Errorf("%s: queued -want, +got:\n%s", tc.reason, d)
			}
		})
	}
}

// All that may wait in one queue, put there in the worst order.
func TestPriorities(t *testing.T) {
	queue := newQueue(t)
	e := source.Events{Watcher: &watcher{queue: queue}}
	key := func(name string) source.Request {
		return source.Request{NamespacedName: types.NamespacedName{Name: name}}
	}
	timer := key("timer")
	timer.Handler = "tick"
	queue.AddWithOpts(priorityqueue.AddOpts{Priority: ptr.To(source.PriorityTimer)}, timer)
	e.Create(
		t.Context(),
		event.TypedCreateEvent[source.Object]{Object: objectOf("resumed", "u1", "1"), IsInInitialList: true}, queue,
	)
	queue.AddWithOpts(priorityqueue.AddOpts{Priority: ptr.To(source.PriorityRetry)}, key("retried"))
	e.Create(t.Context(), event.TypedCreateEvent[source.Object]{Object: objectOf("created", "u2", "1")}, queue)
	e.Update(
		t.Context(),
		event.TypedUpdateEvent[source.Object]{
			ObjectOld: objectOf("updated", "u3", "1"), ObjectNew: objectOf("updated", "u3", "2"),
		},
		queue,
	)
	e.Delete(t.Context(), event.TypedDeleteEvent[source.Object]{Object: objectOf("deleted", "u4", "1")}, queue)
	want := []request{
		{"ns/deleted", "", source.PriorityDeletion}, {
			"ns/created", "", source.PriorityChange,
		}, {"ns/updated", "", source.PriorityChange},
		{"/retried", "", source.PriorityRetry}, {
			"ns/resumed", "", source.PriorityResume,
		}, {"/timer", "tick", source.PriorityTimer},
	}
	if d := cmp.Diff(want, drain(t, queue)); d != "" {
		t.Errorf(
			"what frees others goes first, what can wait goes last, and among equals the first come: -want, +got:\n%s",
			d,
		)
	}
}

// A timer's tick and the changes of its object are two requests: neither hides the other.
func TestRequestsOfOneObject(t *testing.T) {
	queue := newQueue(t)
	source.Events{Watcher: &watcher{queue: queue}}.Create(
		t.Context(), event.TypedCreateEvent[source.Object]{Object: objectOf("a", "u1", "1")}, queue,
	)
	tick := source.Request{NamespacedName: types.NamespacedName{Namespace: "ns", Name: "a"}, Handler: "tick"}
	queue.AddWithOpts(priorityqueue.AddOpts{Priority: ptr.To(source.PriorityTimer)}, tick)
	want := []request{{"ns/a", "", source.PriorityChange}, {"ns/a", "tick", source.PriorityTimer}}
	if d := cmp.Diff(want, drain(t, queue)); d != "" {
		t.Errorf("-want, +got:\n%s", d)
	}
}

func TestEventsWithAPlainQueue(t *testing.T) {
	queue := workqueue.NewTypedRateLimitingQueue(
		workqueue.NewTypedItemExponentialFailureRateLimiter[source.Request](time.Second, time.Second),
	)
	defer queue.ShutDown()
	source.Events{Watcher: &watcher{queue: queue}}.Create(
		t.Context(), event.TypedCreateEvent[source.Object]{Object: objectOf("a", "u1", "1")}, queue,
	)
	got, _ := queue.Get()
	if want := (source.Request{NamespacedName: types.NamespacedName{Namespace: "ns", Name: "a"}}); got != want {
		t.Errorf("a queue without priorities does as well: got %v", got)
	}
}

func TestEventsOfClusterScopedObjects(t *testing.T) {
	queue := newQueue(t)
	obj := compacttest.Changed(objectOf("a", "u1", "1"), func(u *unstructured.Unstructured) { u.SetNamespace("") })
	source.Events{Watcher: &watcher{queue: queue}}.Create(
		t.Context(), event.TypedCreateEvent[source.Object]{Object: obj}, queue,
	)
	if d := cmp.Diff([]request{{"/a", "", source.PriorityChange}}, drain(t, queue)); d != "" {
		t.Errorf("-want, +got:\n%s", d)
	}
}

// Without a queue, a watcher has all events, and nothing else happens.
func TestNoQueue(t *testing.T) {
	w := &watcher{queue: newQueue(t)}
	events, ctx := source.Events{Watcher: w}, t.Context()
	one, two := objectOf("one", "u", "1"), objectOf("one", "u", "2")
	events.Create(ctx, event.TypedCreateEvent[source.Object]{Object: one}, nil)
	events.Update(ctx, event.TypedUpdateEvent[source.Object]{ObjectOld: one, ObjectNew: two}, nil)
	events.Update(ctx, event.TypedUpdateEvent[source.Object]{ObjectOld: two, ObjectNew: two}, nil)
	events.Delete(ctx, event.TypedDeleteEvent[source.Object]{Object: two}, nil)
	want := []string{"ADDED u@1, 0 queued", "MODIFIED u@2, 0 queued", "DELETED u@2, 0 queued"}
	if d := cmp.Diff(want, w.seen); d != "" {
		t.Errorf("seen: -want, +got:\n%s", d)
	}
}
