package explorer_test

import (
	"context"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

// scenario is the life of an object, and what handles it.
type scenario struct {
	settings kopf.Settings
	register func(l *life, s Selection)
	steps    []step
	// recordingHandlers are the handlers that must have recorded the last state; releases must be called for every
	// deletion.
	recordingHandlers, deletionHandlers []string
	isDeleted                           bool
	hasChildren                         bool // the object has children
	// validate refuses contents.
	validate func(object map[string]any) error
	// through is a fault on the way of the operator's requests.
	through func(http.RoundTripper) http.RoundTripper
}

type step struct {
	delay time.Duration
	do    func(w *harness)
}

func create(value string) func(*harness) {
	return func(w *harness) {
		object := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"value": value}}}
		object.SetGroupVersionKind(gvk)
		object.SetNamespace(namespace)
		object.SetName(objectName)
		if err := w.client.Create(context.Background(), object); err != nil {
			w.t.Errorf("creating the object: %v", err)
		}
	}
}

func edit(value string) func(*harness) {
	return func(w *harness) {
		w.edit(func(o *unstructured.Unstructured) {
			if err := unstructured.SetNestedField(o.Object, value, "spec", "value"); err != nil {
				w.t.Errorf("editing the object: %v", err)
			}
		})
	}
}

func remove(w *harness) {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(gvk)
	object.SetNamespace(namespace)
	object.SetName(objectName)
	if err := w.client.Delete(context.Background(), object); client.IgnoreNotFound(err) != nil {
		w.t.Errorf("deleting the object: %v", err)
	}
}

func isConflict(err error) bool { return apierrors.IsConflict(err) }

var anyChange = []kopf.Reason{kopf.ReasonCreate, kopf.ReasonUpdate}

var systemAnnotations = map[string]bool{
	"explorer.example.org/last-handled-configuration": true, "explorer.example.org/handled-uid": true,
	"explorer.example.org/kopf-managed": true,
}

// scenarios are by name.
var scenarios = map[string]scenario{
	"create-with-three": {
		register: func(l *life, s Selection) {
			s.On("a", anyChange, l.effectHandler(0, 0))
			s.On("b", anyChange, l.effectHandler(10*time.Second, 0))
			s.On("c", anyChange, l.effectHandler(2*time.Second, 1))
			s.OnDelete("d", l.effectHandler(0, 0))
		},
		steps:             []step{{delay: time.Second, do: create("x")}},
		recordingHandlers: []string{"a", "b", "c"},
	},
	"refused-status": {
		register: func(l *life, s Selection) {
			s.On("a", anyChange, l.effectHandler(2*time.Second, 0))
			s.On("b", anyChange, l.refusedStatusHandler(2*time.Second, 1))
			s.On("p", anyChange, func(_ context.Context, c *Change) error {
				c.Sub("one", l.refusedStatusHandler(time.Second, 1))
				return nil
			})
			s.OnDelete("d", l.refusedStatusHandler(2*time.Second, 9))
			s.OnDelete("e", l.effectHandler(0, 0))
		},
		steps: []step{
			{delay: time.Second, do: create("x")}, {delay: 40 * time.Second, do: edit("y")},
			{delay: 40 * time.Second, do: remove}, {delay: 40 * time.Second, do: create("z")},
		},
		recordingHandlers: []string{"a", "b", "p/one"}, deletionHandlers: []string{"d", "e"},
		validate: refuseSpoiledStatus,
	},
	"sub-handlers": {
		register: func(l *life, s Selection) {
			s.On("p", anyChange, l.subHandlerParent(5*time.Second, "one", "two"))
			s.On("b", anyChange, l.effectHandler(0, 0))
		},
		steps:             []step{{delay: time.Second, do: create("x")}, {delay: 40 * time.Second, do: edit("y")}},
		recordingHandlers: []string{"p/one", "p/two", "b"},
	},
	"sub-handlers-in-a-chain": {
		register: func(l *life, s Selection) {
			s.On("p", anyChange, l.chainedParent(2*time.Second, "one", "two", "three"))
			s.On("b", anyChange, l.effectHandler(0, 0))
		},
		steps:             []step{{delay: time.Second, do: create("x")}, {delay: 12 * time.Second, do: edit("y")}},
		recordingHandlers: []string{"p/one", "p/two", "p/three", "b"},
	},
	"edit-and-delete-during-sub-handlers": {
		register: func(l *life, s Selection) {
			s.On("p", anyChange, l.nestedParent(3*time.Second, "one", "two"))
			s.OnDelete("d", l.subHandlerParent(2*time.Second, "x", "y"))
		},
		steps: []step{
			{delay: time.Second, do: create("x")}, {delay: 4 * time.Second, do: edit("y")}, {
				delay: 40 * time.Second, do: edit("z"),
			},
			{delay: 4 * time.Second, do: remove},
		},
		deletionHandlers: []string{"d/x", "d/y"}, isDeleted: true,
	},
	"lifecycle-asap": {
		settings: kopf.Settings{Execution: kopf.ExecutionSettings{Lifecycle: kopf.ASAP}},
		register: func(l *life, s Selection) {
			s.On("p", anyChange, l.subHandlerParent(2*time.Second, "one", "two"))
			s.On("b", anyChange, l.effectHandler(2*time.Second, 1))
		},
		steps:             []step{{delay: time.Second, do: create("x")}, {delay: 3 * time.Second, do: edit("y")}},
		recordingHandlers: []string{"p/one", "p/two", "b"},
	},
	"edit-during-create": {
		register: func(l *life, s Selection) {
			s.On("a", anyChange, l.effectHandler(0, 0))
			s.On("b", anyChange, l.effectHandler(10*time.Second, 1))
		},
		steps:             []step{{delay: time.Second, do: create("x")}, {delay: 5 * time.Second, do: edit("y")}},
		recordingHandlers: []string{"a", "b"},
	},
	"delete-during-retries": {
		register: func(l *life, s Selection) {
			s.OnCreate("a", l.effectHandler(2*time.Second, 3))
			s.OnDelete("d", l.effectHandler(2*time.Second, 1))
			s.OnDelete("e", l.effectHandler(0, 0))
		},
		steps:            []step{{delay: time.Second, do: create("x")}, {delay: 10 * time.Second, do: remove}},
		deletionHandlers: []string{"d", "e"}, isDeleted: true,
	},
	"fields": {
		register: func(l *life, s Selection) {
			s.OnField("f", "spec.value", l.effectHandler(2*time.Second, 1))
			s.On("b", anyChange, l.effectHandler(0, 0))
		},
		steps: []step{
			{delay: time.Second, do: create("x")}, {delay: 30 * time.Second, do: edit("y")},
			{delay: 3 * time.Second, do: edit("z")},
		},
		recordingHandlers: []string{"b"},
	},
	"resume": {
		register: func(l *life, s Selection) {
			s.OnResume("r", l.effectHandler(2*time.Second, 1))
			s.On("a", anyChange, l.effectHandler(2*time.Second, 0))
		},
		steps:             []step{{delay: time.Second, do: create("x")}, {delay: 30 * time.Second, do: edit("y")}},
		recordingHandlers: []string{"a"},
	},
	"shared-id": {
		register: func(l *life, s Selection) {
			s.On(
				"a", []kopf.Reason{kopf.ReasonCreate, kopf.ReasonUpdate, kopf.ReasonDelete},
				l.effectHandler(2*time.Second, 1),
			)
			s.On("b", anyChange, l.effectHandler(0, 0))
		},
		steps: []step{
			{delay: time.Second, do: create("x")}, {delay: 4 * time.Second, do: edit("y")}, {
				delay: 30 * time.Second, do: edit("z"),
			},
			{delay: 4 * time.Second, do: remove},
		},
		deletionHandlers: []string{"a"}, isDeleted: true,
	},
	"delete-and-recreate": {
		register: func(l *life, s Selection) {
			s.On("a", anyChange, l.effectHandler(2*time.Second, 1))
			s.OnDelete("d", l.effectHandler(2*time.Second, 0))
		},
		steps: []step{
			{delay: time.Second, do: create("x")}, {delay: 30 * time.Second, do: remove}, {
				delay: 20 * time.Second, do: create("x"),
			},
			{delay: 30 * time.Second, do: edit("y")},
		},
		recordingHandlers: []string{"a"}, deletionHandlers: []string{"d"},
	},
	"background-and-delete": {
		register: func(l *life, s Selection) {
			s.Daemon("make", l.backgroundTask("make", true))
			s.Timer("remake", time.Minute, l.backgroundTask("remake", false))
			s.OnDelete("d", l.effectHandler(0, 0))
		},
		steps: []step{
			{delay: time.Second, do: create("x")}, {delay: 500 * time.Millisecond, do: remove},
			{delay: 20 * time.Second, do: create("y")}, {delay: 2 * time.Minute, do: remove},
		},
		deletionHandlers: []string{"d"}, isDeleted: true,
	},
	"children": {
		register: func(l *life, s Selection) { s.On("a", anyChange, l.childHandler(time.Second)) },
		steps: []step{
			{delay: time.Second, do: create("abC")}, {delay: 30 * time.Second, do: edit("bdE")},
			{delay: 30 * time.Second, do: edit("ef")},
		},
		recordingHandlers: []string{"a"}, hasChildren: true,
	},
	"children-of-two-edited-meanwhile": {
		register: func(l *life, s Selection) {
			s.On("a", anyChange, l.childHandler(2*time.Second))
			s.On("b", anyChange, l.childHandler(2*time.Second))
		},
		steps:             []step{{delay: time.Second, do: create("abC")}, {delay: 3 * time.Second, do: edit("bD")}},
		recordingHandlers: []string{"a", "b"}, hasChildren: true,
	},
	"children-and-delete": {
		register: func(l *life, s Selection) { s.On("a", anyChange, l.childHandler(2*time.Second)) },
		steps: []step{
			{delay: time.Second, do: create("aB")}, {delay: 10 * time.Second, do: edit("aCD")},
			{delay: 2 * time.Second, do: remove},
		},
		isDeleted: true, hasChildren: true,
	},
	"children-of-a-kind-that-the-next-version-drops": {
		register: func(l *life, s Selection) {
			if l.process.Number() > 1 {
				s.On("a", anyChange, l.childlessHandler(time.Second))
				return
			}
			s.On("a", anyChange, l.childHandler(time.Second))
			s.Owns(childOf("", ""))
		},
		// The last value has no letters: the final state is the same in both versions.
		steps:             []step{{delay: time.Second, do: create("abC")}, {delay: 30 * time.Second, do: edit("")}},
		recordingHandlers: []string{"a"}, hasChildren: true,
	},
	"children-that-are-touched": {
		register: func(l *life, s Selection) {
			s.On("a", append([]kopf.Reason{kopf.ReasonResume}, anyChange...), l.childHandler(time.Second))
			s.Owns(childOf("", ""))
		},
		steps: []step{
			{delay: time.Second, do: create("abC")}, {delay: 10 * time.Second, do: touch},
			{delay: 10 * time.Second, do: edit("bdC")}, {delay: 10 * time.Second, do: touch},
		},
		recordingHandlers: []string{"a"}, hasChildren: true,
	},
	"children-that-are-waited-for": {
		register: func(l *life, s Selection) {
			s.On("a", anyChange, l.waitingChildHandler(time.Second))
			s.Owns(childOf("", ""))
		},
		steps: []step{
			{delay: time.Second, do: create("ab")}, {delay: 10 * time.Second, do: finishChildren},
			{delay: 10 * time.Second, do: finishChildren}, {delay: 10 * time.Second, do: edit("bC")},
			{delay: 10 * time.Second, do: finishChildren}, {delay: 10 * time.Second, do: edit("d")},
			{delay: 500 * time.Millisecond, do: edit("de")}, {delay: 10 * time.Second, do: finishChildren},
			{delay: time.Minute, do: finishChildren}, {delay: time.Minute, do: finishChildren},
			{delay: time.Minute, do: finishChildren},
		},
		recordingHandlers: []string{"a"}, hasChildren: true,
	},
	"children-and-recreate":                recreatedScenario(2250 * time.Millisecond), // between a and b
	"children-and-recreate-after-the-last": recreatedScenario(2400 * time.Millisecond), // as the handler returns
}

// recreatedScenario is an object with slow children, which is deleted that long after its creation, and made again at
// once.
func recreatedScenario(after time.Duration) scenario {
	return scenario{
		register: func(l *life, s Selection) { s.On("a", anyChange, l.childHandler(2*time.Second)) },
		steps: []step{
			{delay: time.Second, do: create("ab")}, {delay: after, do: remove},
			{delay: 10 * time.Millisecond, do: create("bc")}, {delay: 10 * time.Second, do: collectGarbage},
			{delay: 20 * time.Second, do: edit("cd")}, {delay: 10 * time.Second, do: collectGarbage},
		},
		recordingHandlers: []string{"a"}, hasChildren: true,
		through: func(next http.RoundTripper) http.RoundTripper { return slowTransport{next} },
	}
}
