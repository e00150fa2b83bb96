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

	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/source"
	"github.com/kopf-runtime/kopf-runtime/test/kits/compacttest"
)

// recordingObserver records its calls, with the length of the queue at that time, as the watcher is called before the
// queue.
type recordingObserver struct {
	queue        source.Queue
	notedObjects []string
	notedEvents  []string
	echoVersion  string // the version that needs no pass
}

func (w *recordingObserver) NoteListed(obj source.Object)  { w.recordObject("listed", obj) }
func (w *recordingObserver) NoteDeleted(obj source.Object) { w.recordObject("deleted", obj) }

func (w *recordingObserver) NoteEvent(kind string, obj source.Object) (pass bool) {
	w.notedEvents = append(
		w.notedEvents, fmt.Sprintf("%s %s@%s, %d queued", kind, obj.GetUID(), obj.GetResourceVersion(), w.queue.Len()),
	)
	return obj.GetResourceVersion() != w.echoVersion
}

func (w *recordingObserver) recordObject(what string, obj source.Object) {
	w.notedObjects = append(w.notedObjects, fmt.Sprintf("%s %s/%s %s@%s, %d queued", what, obj.GetNamespace(),
		obj.GetName(),
		obj.GetUID(),
		obj.GetResourceVersion(), w.queue.Len()))
}

func objectOf(name, uid, version string) source.Object {
	return compacttest.NewObject(map[string]any{"metadata": map[string]any{
		"namespace": "ns", "name": name, "uid": uid, "resourceVersion": version,
	}})
}

// request is a request that came out of the queue.
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

// drain takes all requests out of the queue. Reading flushes pending additions, so the length is reliable.
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

// TestEvents shows which informer events are passed to the watcher and queued, and with which priority.
func TestEvents(t *testing.T) {
	v1 := func() source.Object { return objectOf("a", "u1", "1") }
	tests := map[string]struct {
		reason    string
		send      func(ctx context.Context, e source.Events, q source.Queue)
		wantNoted []string
		queued    []request
	}{
		"Resync": {
			reason: "an unchanged object is queued last, and not passed to the watcher",
			queued: []request{{"ns/a", "", source.PriorityResume}},
			send: func(ctx context.Context, e source.Events, q source.Queue) {
				e.Update(ctx, event.TypedUpdateEvent[source.Object]{ObjectOld: v1(), ObjectNew: v1()}, q)
			},
		},
		"NoPassNeeded": {
			reason: "an event that needs no pass is passed to the watcher and not queued",
			send: func(ctx context.Context, e source.Events, q source.Queue) {
				e.Create(ctx, event.TypedCreateEvent[source.Object]{Object: objectOf("a", "u1", "enough")}, q)
				e.Update(ctx, event.TypedUpdateEvent[source.Object]{
					ObjectOld: v1(), ObjectNew: objectOf("a", "u1", "enough"),
				}, q)
			},
		},
		"DeletionAnyway": {
			reason: "deletions and replacements are queued even if the watcher needs no pass",
			send: func(ctx context.Context, e source.Events, q source.Queue) {
				e.Delete(ctx, event.TypedDeleteEvent[source.Object]{Object: objectOf("a", "u1", "enough")}, q)
				e.Update(ctx, event.TypedUpdateEvent[source.Object]{
					ObjectOld: objectOf("b", "u1", "1"), ObjectNew: objectOf("b", "u2", "enough"),
				}, q)
			},
			wantNoted: []string{"deleted ns/a u1@enough, 0 queued", "deleted ns/b u1@1, 1 queued"},
			queued: []request{
				{"ns/a", "", source.PriorityDeletion}, {"ns/b", "", source.PriorityChange},
			},
		},
		"Generic": {
			reason: "a generic event is ignored, as informers do not send any",
			send: func(ctx context.Context, e source.Events, q source.Queue) {
				e.Generic(ctx, event.TypedGenericEvent[source.Object]{Object: v1()}, q)
			},
		},
		"Replaced": {
			reason: "an update with another uid passes on the missed deletion first, " +
				"and queues the new object",
			send: func(ctx context.Context, e source.Events, q source.Queue) {
				e.Update(
					ctx, event.TypedUpdateEvent[source.Object]{ObjectOld: v1(), ObjectNew: objectOf("a", "u2", "9")}, q,
				)
			},
			wantNoted: []string{"deleted ns/a u1@1, 0 queued"}, queued: []request{{"ns/a", "", source.PriorityChange}},
		},
		"ReplacedAtTheSameVersion": {
			reason: "an update with another uid is a replacement, even at the same version",
			send: func(ctx context.Context, e source.Events, q source.Queue) {
				e.Update(
					ctx, event.TypedUpdateEvent[source.Object]{ObjectOld: v1(), ObjectNew: objectOf("a", "u2", "1")}, q,
				)
			},
			wantNoted: []string{"deleted ns/a u1@1, 0 queued"}, queued: []request{{"ns/a", "", source.PriorityChange}},
		},
		"Deleted": {
			reason: "a deletion is passed on with the last known state before it is queued",
			send: func(ctx context.Context, e source.Events, q source.Queue) {
				e.Delete(ctx, event.TypedDeleteEvent[source.Object]{Object: v1()}, q)
			},
			wantNoted: []string{"deleted ns/a u1@1, 0 queued"},
			queued:    []request{{"ns/a", "", source.PriorityDeletion}},
		},
		"Listed": {
			reason: "a listed object is passed on, and queued with the lowest priority of objects",
			send: func(ctx context.Context, e source.Events, q source.Queue) {
				e.Create(ctx, event.TypedCreateEvent[source.Object]{Object: v1(), IsInInitialList: true}, q)
			},
			wantNoted: []string{"listed ns/a u1@1, 0 queued"}, queued: []request{{"ns/a", "", source.PriorityResume}},
		},
		"ListedDeleting": {
			reason: "a listed object in deletion is queued as a deletion",
			send: func(ctx context.Context, e source.Events, q source.Queue) {
				obj := compacttest.DeletingCopy(v1())
				e.Create(ctx, event.TypedCreateEvent[source.Object]{Object: obj, IsInInitialList: true}, q)
			},
			wantNoted: []string{"listed ns/a u1@1, 0 queued"}, queued: []request{{"ns/a", "", source.PriorityDeletion}},
		},
		"ListedThenChanged": {
			reason: "a change of a listed object raises its priority, and it is queued once",
			send: func(ctx context.Context, e source.Events, q source.Queue) {
				e.Create(ctx, event.TypedCreateEvent[source.Object]{Object: v1(), IsInInitialList: true}, q)
				e.Update(
					ctx, event.TypedUpdateEvent[source.Object]{ObjectOld: v1(), ObjectNew: objectOf("a", "u1", "2")}, q,
				)
			},
			wantNoted: []string{"listed ns/a u1@1, 0 queued"}, queued: []request{{"ns/a", "", source.PriorityChange}},
		},
		"ChangedThenDeleting": {
			reason: "a deletion of a changed object raises its priority",
			send: func(ctx context.Context, e source.Events, q source.Queue) {
				e.Create(ctx, event.TypedCreateEvent[source.Object]{Object: v1()}, q)
				e.Update(
					ctx,
					event.TypedUpdateEvent[source.Object]{
						ObjectOld: v1(), ObjectNew: compacttest.DeletingCopy(objectOf("a", "u1", "2")),
					},
					q,
				)
			},
			queued: []request{{"ns/a", "", source.PriorityDeletion}},
		},
		"Created": {
			reason: "a new object is queued as a change",
			send: func(ctx context.Context, e source.Events, q source.Queue) {
				e.Create(ctx, event.TypedCreateEvent[source.Object]{Object: v1()}, q)
			},
			queued: []request{{"ns/a", "", source.PriorityChange}},
		},
		"CreatedDeleting": {
			reason: "a new object in deletion is queued as a deletion",
			send: func(ctx context.Context, e source.Events, q source.Queue) {
				e.Create(ctx, event.TypedCreateEvent[source.Object]{Object: compacttest.DeletingCopy(v1())}, q)
			},
			queued: []request{{"ns/a", "", source.PriorityDeletion}},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			queue := newQueue(t)
			w := &recordingObserver{queue: queue, echoVersion: "enough"}
			tc.send(t.Context(), source.Events{Observer: w}, queue)
			if d := cmp.Diff(tc.wantNoted, w.notedObjects); d != "" {
				t.Errorf("%s: passed on: -want, +got:\n%s", tc.reason, d)
			}
			if d := cmp.Diff(tc.queued, drain(t, queue)); d != "" {
				t.Errorf("%s: queued: -want, +got:\n%s", tc.reason, d)
			}
		})
	}
}

// TestPriorities shows the order of all kinds of requests in one queue, added in the worst order.
func TestPriorities(t *testing.T) {
	queue := newQueue(t)
	e := source.Events{Observer: &recordingObserver{queue: queue}}
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
			"want the order of priorities, and of additions among equals: -want, +got:\n%s",
			d,
		)
	}
}

// TestRequestsOfOneObject shows that a tick of a timer and a change of its object are two requests.
func TestRequestsOfOneObject(t *testing.T) {
	queue := newQueue(t)
	source.Events{Observer: &recordingObserver{queue: queue}}.Create(
		t.Context(), event.TypedCreateEvent[source.Object]{Object: objectOf("a", "u1", "1")}, queue,
	)
	tick := source.Request{NamespacedName: types.NamespacedName{Namespace: "ns", Name: "a"}, Handler: "tick"}
	queue.AddWithOpts(priorityqueue.AddOpts{Priority: ptr.To(source.PriorityTimer)}, tick)
	want := []request{{"ns/a", "", source.PriorityChange}, {"ns/a", "tick", source.PriorityTimer}}
	if d := cmp.Diff(want, drain(t, queue)); d != "" {
		t.Errorf("-want, +got:\n%s", d)
	}
}

// TestEventsWithAPlainQueue shows that a queue without priorities can be used.
func TestEventsWithAPlainQueue(t *testing.T) {
	queue := workqueue.NewTypedRateLimitingQueue(
		workqueue.NewTypedItemExponentialFailureRateLimiter[source.Request](time.Second, time.Second),
	)
	defer queue.ShutDown()
	source.Events{Observer: &recordingObserver{queue: queue}}.Create(
		t.Context(), event.TypedCreateEvent[source.Object]{Object: objectOf("a", "u1", "1")}, queue,
	)
	got, _ := queue.Get()
	if want := (source.Request{NamespacedName: types.NamespacedName{Namespace: "ns", Name: "a"}}); got != want {
		t.Errorf("a queue without priorities got %v", got)
	}
}

// TestEventsOfClusterScopedObjects shows that a cluster-scoped object is queued without a namespace.
func TestEventsOfClusterScopedObjects(t *testing.T) {
	queue := newQueue(t)
	obj := compacttest.ChangedCopy(objectOf("a", "u1", "1"), func(u *unstructured.Unstructured) { u.SetNamespace("") })
	source.Events{Observer: &recordingObserver{queue: queue}}.Create(
		t.Context(), event.TypedCreateEvent[source.Object]{Object: obj}, queue,
	)
	if d := cmp.Diff([]request{{"/a", "", source.PriorityChange}}, drain(t, queue)); d != "" {
		t.Errorf("-want, +got:\n%s", d)
	}
}

// TestNoQueue shows that a watcher gets all events without a queue.
func TestNoQueue(t *testing.T) {
	w := &recordingObserver{queue: newQueue(t)}
	events, ctx := source.Events{Observer: w}, t.Context()
	one, two := objectOf("one", "u", "1"), objectOf("one", "u", "2")
	events.Create(ctx, event.TypedCreateEvent[source.Object]{Object: one}, nil)
	events.Update(ctx, event.TypedUpdateEvent[source.Object]{ObjectOld: one, ObjectNew: two}, nil)
	events.Update(ctx, event.TypedUpdateEvent[source.Object]{ObjectOld: two, ObjectNew: two}, nil)
	events.Delete(ctx, event.TypedDeleteEvent[source.Object]{Object: two}, nil)
	want := []string{"ADDED u@1, 0 queued", "MODIFIED u@2, 0 queued", "DELETED u@2, 0 queued"}
	if d := cmp.Diff(want, w.notedEvents); d != "" {
		t.Errorf("seen: -want, +got:\n%s", d)
	}
}
