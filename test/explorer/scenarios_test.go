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
	// carriers are the handlers that must have recorded the last state; releases must be called for every deletion.
	carriers, releases []string
	resumes            map[string]bool
	deleted            bool
	ensures            bool // the object has children
	lasting            map[string]bool
	// valid refuses contents.
	valid func(object map[string]any) error
	// through is a fault on the way of the operator's requests.
	through func(http.RoundTripper) http.RoundTripper
}

type step struct {
	after time.Duration
	do    func(w *world)
}

func create(value string) func(*world) {
	return func(w *world) {
		object := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"value": value}}}
		object.SetGroupVersionKind(gvk)
		object.SetNamespace(namespace)
		object.SetName(objectName)
		if err := w.client.Create(context.Background(), object); err != nil {
			w.t.Errorf("creating the object: %v", err)
		}
	}
}

func edit(value string) func(*world) {
	return func(w *world) {
		w.edit(func(o *unstructured.Unstructured) {
			if err := unstructured.SetNestedField(o.Object, value, "spec", "value"); err != nil {
				w.t.Errorf("editing the object: %v", err)
			}
		})
	}
}

func remove(w *world) {
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

var lasting = map[string]bool{
	"explorer.example.org/last-handled-configuration": true, "explorer.example.org/handled-uid": true,
	"explorer.example.org/kopf-managed": true,
}

// scenarios are by name.
var scenarios = map[string]scenario{
	"create-with-three": {
		register: func(l *life, s Selection) {
			s.On("a", anyChange, l.carries(0, 0))
			s.On("b", anyChange, l.carries(10*time.Second, 0))
			s.On("c", anyChange, l.carries(2*time.Second, 1))
			s.OnDelete("d", l.carries(0, 0))
		},
		steps:    []step{{after: time.Second, do: create("x")}},
		carriers: []string{"a", "b", "c"}, lasting: lasting,
	},
	"refused-status": {
		register: func(l *life, s Selection) {
			s.On("a", anyChange, l.carries(2*time.Second, 0))
			s.On("b", anyChange, l.spoils(2*time.Second, 1))
			s.On("p", anyChange, func(_ context.Context, c *Change) error {
				c.Sub("one", l.spoils(time.Second, 1))
				return nil
			})
			s.OnDelete("d", l.spoils(2*time.Second, 9))
			s.OnDelete("e", l.carries(0, 0))
		},
		steps: []step{
			{after: time.Second, do: create("x")}, {after: 40 * time.Second, do: edit("y")},
			{after: 40 * time.Second, do: remove}, {after: 40 * time.Second, do: create("z")},
		},
		carriers: []string{"a", "b", "p/one"}, releases: []string{"d", "e"}, valid: unspoiled, lasting: lasting,
	},
	"sub-handlers": {
		register: func(l *life, s Selection) {
			s.On("p", anyChange, l.divides(5*time.Second, "one", "two"))
			s.On("b", anyChange, l.carries(0, 0))
		},
		steps:    []step{{after: time.Second, do: create("x")}, {after: 40 * time.Second, do: edit("y")}},
		carriers: []string{"p/one", "p/two", "b"}, lasting: lasting,
	},
	"sub-handlers-in-a-chain": {
		register: func(l *life, s Selection) {
			s.On("p", anyChange, l.chains(2*time.Second, "one", "two", "three"))
			s.On("b", anyChange, l.carries(0, 0))
		},
		steps:    []step{{after: time.Second, do: create("x")}, {after: 12 * time.Second, do: edit("y")}},
		carriers: []string{"p/one", "p/two", "p/three", "b"}, lasting: lasting,
	},
	"edit-and-delete-during-sub-handlers": {
		register: func(l *life, s Selection) {
			s.On("p", anyChange, l.nests(3*time.Second, "one", "two"))
			s.OnDelete("d", l.divides(2*time.Second, "x", "y"))
		},
		steps: []step{
			{after: time.Second, do: create("x")}, {after: 4 * time.Second, do: edit("y")}, {
				after: 40 * time.Second, do: edit("z"),
			},
			{after: 4 * time.Second, do: remove},
		},
		releases: []string{"d/x", "d/y"}, deleted: true, lasting: lasting,
	},
	"lifecycle-asap": {
		settings: kopf.Settings{Execution: kopf.ExecutionSettings{Lifecycle: kopf.ASAP}},
		register: func(l *life, s Selection) {
			s.On("p", anyChange, l.divides(2*time.Second, "one", "two"))
			s.On("b", anyChange, l.carries(2*time.Second, 1))
		},
		steps:    []step{{after: time.Second, do: create("x")}, {after: 3 * time.Second, do: edit("y")}},
		carriers: []string{"p/one", "p/two", "b"}, lasting: lasting,
	},
	"edit-during-create": {
		register: func(l *life, s Selection) {
			s.On("a", anyChange, l.carries(0, 0))
			s.On("b", anyChange, l.carries(10*time.Second, 1))
		},
		steps:    []step{{after: time.Second, do: create("x")}, {after: 5 * time.Second, do: edit("y")}},
		carriers: []string{"a", "b"}, lasting: lasting,
	},
	"delete-during-retries": {
		register: func(l *life, s Selection) {
			s.OnCreate("a", l.carries(2*time.Second, 3))
			s.OnDelete("d", l.carries(2*time.Second, 1))
			s.OnDelete("e", l.carries(0, 0))
		},
		steps:    []step{{after: time.Second, do: create("x")}, {after: 10 * time.Second, do: remove}},
		releases: []string{"d", "e"}, deleted: true, lasting: lasting,
	},
	"fields": {
		register: func(l *life, s Selection) {
			s.OnField("f", "spec.value", l.carries(2*time.Second, 1))
			s.On("b", anyChange, l.carries(0, 0))
		},
		steps: []step{
			{after: time.Second, do: create("x")}, {after: 30 * time.Second, do: edit("y")},
			{after: 3 * time.Second, do: edit("z")},
		},
		carriers: []string{"b"}, lasting: lasting,
	},
	"resume": {
		register: func(l *life, s Selection) {
			s.OnResume("r", l.carries(2*time.Second, 1))
			s.On("a", anyChange, l.carries(2*time.Second, 0))
		},
		steps:    []step{{after: time.Second, do: create("x")}, {after: 30 * time.Second, do: edit("y")}},
		carriers: []string{"a"}, resumes: map[string]bool{"r": true}, lasting: lasting,
	},
	"shared-id": {
		register: func(l *life, s Selection) {
			s.On(
				"a", []kopf.Reason{kopf.ReasonCreate, kopf.ReasonUpdate, kopf.ReasonDelete},
				l.carries(2*time.Second, 1),
			)
			s.On("b", anyChange, l.carries(0, 0))
		},
		steps: []step{
			{after: time.Second, do: create("x")}, {after: 4 * time.Second, do: edit("y")}, {
				after: 30 * time.Second, do: edit("z"),
			},
			{after: 4 * time.Second, do: remove},
		},
		releases: []string{"a"}, deleted: true, lasting: lasting,
	},
	"delete-and-recreate": {
		register: func(l *life, s Selection) {
			s.On("a", anyChange, l.carries(2*time.Second, 1))
			s.OnDelete("d", l.carries(2*time.Second, 0))
		},
		steps: []step{
			{after: time.Second, do: create("x")}, {after: 30 * time.Second, do: remove}, {
				after: 20 * time.Second, do: create("x"),
			},
			{after: 30 * time.Second, do: edit("y")},
		},
		carriers: []string{"a"}, releases: []string{"d"}, lasting: lasting,
	},
	"background-and-delete": {
		register: func(l *life, s Selection) {
			s.Daemon("make", l.makes("make", true))
			s.Timer("remake", time.Minute, l.makes("remake", false))
			s.OnDelete("d", l.carries(0, 0))
		},
		steps: []step{
			{after: time.Second, do: create("x")}, {after: 500 * time.Millisecond, do: remove},
			{after: 20 * time.Second, do: create("y")}, {after: 2 * time.Minute, do: remove},
		},
		releases: []string{"d"}, deleted: true, lasting: lasting,
	},
	"children": {
		register: func(l *life, s Selection) { s.On("a", anyChange, l.ensures(time.Second)) },
		steps: []step{
			{after: time.Second, do: create("abC")}, {after: 30 * time.Second, do: edit("bdE")},
			{after: 30 * time.Second, do: edit("ef")},
		},
		carriers: []string{"a"}, ensures: true, lasting: lasting,
	},
	"children-of-two-edited-meanwhile": {
		register: func(l *life, s Selection) {
			s.On("a", anyChange, l.ensures(2*time.Second))
			s.On("b", anyChange, l.ensures(2*time.Second))
		},
		steps:    []step{{after: time.Second, do: create("abC")}, {after: 3 * time.Second, do: edit("bD")}},
		carriers: []string{"a", "b"}, ensures: true, lasting: lasting,
	},
	"children-and-delete": {
		register: func(l *life, s Selection) { s.On("a", anyChange, l.ensures(2*time.Second)) },
		steps: []step{
			{after: time.Second, do: create("aB")}, {after: 10 * time.Second, do: edit("aCD")},
			{after: 2 * time.Second, do: remove},
		},
		deleted: true, ensures: true, lasting: lasting,
	},
	"children-that-are-touched": {
		register: func(l *life, s Selection) {
			s.On("a", append([]kopf.Reason{kopf.ReasonResume}, anyChange...), l.ensures(time.Second))
			s.Owns(childOf("", ""))
		},
		steps: []step{
			{after: time.Second, do: create("abC")}, {after: 10 * time.Second, do: touch},
			{after: 10 * time.Second, do: edit("bdC")}, {after: 10 * time.Second, do: touch},
		},
		carriers: []string{"a"}, resumes: map[string]bool{"a": true}, ensures: true, lasting: lasting,
	},
	"children-that-are-waited-for": {
		register: func(l *life, s Selection) {
			s.On("a", anyChange, l.waits(time.Second))
			s.Owns(childOf("", ""))
		},
		steps: []step{
			{after: time.Second, do: create("ab")}, {after: 10 * time.Second, do: finish},
			{after: 10 * time.Second, do: finish}, {after: 10 * time.Second, do: edit("bC")},
			{after: 10 * time.Second, do: finish}, {after: 10 * time.Second, do: edit("d")},
			{after: 500 * time.Millisecond, do: edit("de")}, {after: 10 * time.Second, do: finish},
			{after: time.Minute, do: finish}, {after: time.Minute, do: finish}, {after: time.Minute, do: finish},
		},
		carriers: []string{"a"}, ensures: true, lasting: lasting,
	},
	"children-and-recreate":                recreated(2250 * time.Millisecond), // between a and b
	"children-and-recreate-after-the-last": recreated(2400 * time.Millisecond), // as the handler returns
}

// recreated is an object with slow children, which is deleted that long after its creation, and made again at once.
func recreated(after time.Duration) scenario {
	return scenario{
		register: func(l *life, s Selection) { s.On("a", anyChange, l.ensures(2*time.Second)) },
		steps: []step{
			{after: time.Second, do: create("ab")}, {after: after, do: remove},
			{after: 10 * time.Millisecond, do: create("bc")}, {after: 10 * time.Second, do: collect},
			{after: 20 * time.Second, do: edit("cd")}, {after: 10 * time.Second, do: collect},
		},
		carriers: []string{"a"}, ensures: true, lasting: lasting,
		through: func(next http.RoundTripper) http.RoundTripper { return slow{next} },
	}
}
