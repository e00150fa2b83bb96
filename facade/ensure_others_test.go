package kopf_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

// ensureErrors records the errors of Ensure.
type ensureErrors struct {
	mu   sync.Mutex
	errs []error
}

func (c *ensureErrors) ensure(ctx context.Context, change *kopf.Change[*kopf.Unstructured]) error {
	return c.note(ensure(ctx, change))
}

// noting records the errors of a handler.
func (c *ensureErrors) noting(handler kopf.ChangeFunc[*kopf.Unstructured]) kopf.ChangeFunc[*kopf.Unstructured] {
	return func(ctx context.Context, change *kopf.Change[*kopf.Unstructured]) error {
		return c.note(handler(ctx, change))
	}
}

func (c *ensureErrors) note(err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.errs = append(c.errs, err)
	return err
}

func (c *ensureErrors) last() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.errs) == 0 {
		return errors.New("never called")
	}
	return c.errs[len(c.errs)-1]
}

func (c *ensureErrors) requireLast(t *testing.T, parts ...string) {
	t.Helper()
	err := c.last()
	if err == nil {
		t.Errorf("Ensure fails with an error about %q: got none", parts)
		return
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("want %q in the error of Ensure, got: %v", part, err)
		}
	}
}

// runRecordingErrors runs the usual handler and records its errors.
func (h ensureFixture) runRecordingErrors() (*ensureErrors, func()) {
	heard := &ensureErrors{}
	_, stop := h.run(func(s kopf.Selection[*kopf.Unstructured]) { s.On("ensure", nonDeleteReasons, heard.ensure) })
	return heard, stop
}

// putConfigMap creates a config map of another client.
func (h ensureFixture) putConfigMap(name, value string) {
	h.t.Helper()
	room := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name, "namespace": "default"},
		"data": map[string]any{"value": value},
	}}
	if err := h.directClient.Create(h.t.Context(), room); err != nil {
		h.t.Fatal(err)
	}
}

// TestEnsureLeavesStrangersAlone shows that objects of other owners are neither applied nor pruned, and that the
// other children are still handled.
func TestEnsureLeavesStrangersAlone(t *testing.T) {
	withEnsureFixture(t, func(h ensureFixture) {
		heard, stop := h.runRecordingErrors()
		defer stop()
		h.putConfigMap("b", "theirs")
		before := h.room("default", "b").GetResourceVersion()
		h.createHouseAndWait("a=1", "b=2", "c=3")
		heard.requireLast(t, "child 1", "ConfigMap default/b", "not a child of this parent")
		if h.room("default", "b").GetResourceVersion() != before {
			t.Errorf("the object of another owner is not changed: got %v", h.room("default", "b"))
		}
		if h.room("default", "a") == nil || h.room("default", "c") == nil {
			t.Error("the other children are applied")
		}
		h.changeRooms("a=1")
		if h.room("default", "b") == nil || h.room("default", "c") != nil {
			t.Error("pruning deletes the child and keeps the object of another owner")
		}
		if err := heard.last(); err != nil {
			t.Error(err)
		}
		// A child was deleted, and another client has created an object with its name since.
		h.api.Discard(settings, "default", "a")
		h.putConfigMap("a", "theirs")
		h.changeRooms("a=2")
		heard.requireLast(t, "child 0", "ConfigMap default/a", "not a child of this parent")
		if value, _, _ := nested(h.room("default", "a"), "data", "value"); value != "theirs" {
			t.Errorf("the object of another owner keeps its value: got %q", value)
		}
	})
}

// TestEnsureSetsBackEditsButNotWhatOthersDeclare shows that the next call of the handler restores edited and
// deleted children, and that a field that another manager declares is an error.
func TestEnsureSetsBackEditsButNotWhatOthersDeclare(t *testing.T) {
	withEnsureFixture(t, func(h ensureFixture) {
		heard, stop := h.runRecordingErrors()
		defer stop()
		h.createHouseAndWait("a=1", "b=2")
		edited := h.room("default", "a")
		edited.Object["apiVersion"], edited.Object["kind"] = "v1", "ConfigMap"
		edited.Object["data"] = map[string]any{"value": "edited", "other": "theirs"}
		if err := h.directClient.Update(t.Context(), edited); err != nil {
			t.Fatal(err)
		}
		h.api.Discard(settings, "default", "b")
		h.changeRooms("a=1", "b=2", "c=3")
		value, _, _ := nested(h.room("default", "a"), "data", "value")
		other, _, _ := nested(h.room("default", "a"), "data", "other")
		if value != "1" || other != "theirs" || h.room("default", "b") == nil {
			t.Errorf("edited fields and deleted children are restored: a is %q, other field %q, b is %v",
				value, other, h.room("default", "b"))
		}
		if err := heard.last(); err != nil {
			t.Error(err)
		}

		declared := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a", "namespace": "default"},
			"data": map[string]any{"value": "rival"},
		}}
		if err := h.directClient.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(declared),
			client.FieldOwner("rivals.example.org"), client.ForceOwnership); err != nil {
			t.Fatal(err)
		}
		h.changeRooms("a=1", "b=2")
		heard.requireLast(t, "child 0", "ConfigMap default/a", ".data.value", `"rivals.example.org"`)
		if value, _, _ := nested(h.room("default", "a"), "data", "value"); value != "rival" {
			t.Errorf("the field of the other manager is kept: got %q", value)
		}
		if h.room("default", "c") == nil {
			t.Error("a failed child prevents pruning")
		}
	})
}

// TestEnsureAdoptsNothingOfAFormerParent shows that a new parent with the same name does not take over the children
// of the deleted parent.
func TestEnsureAdoptsNothingOfAFormerParent(t *testing.T) {
	withEnsureFixture(t, func(h ensureFixture) {
		heard, stop := h.runRecordingErrors()
		defer stop()
		h.createHouseAndWait("a=1")
		former := h.house().GetUID()
		h.api.Discard(houses, "default", "home")
		h.createHouseAndWait("a=2") // the garbage collector has not run yet
		heard.requireLast(t, "child of another object", string(former))
		if h.owner("default", "a") != former {
			t.Errorf("the former parent still owns the child: got %q", h.owner("default", "a"))
		}
		h.api.Discard(settings, "default", "a") // as the garbage collector does
		h.settle()
		if now := h.house().GetUID(); now == former || h.owner("default", "a") != now {
			t.Errorf("the new parent owns the new child: got %q, want %q", h.owner("default", "a"), now)
		}
	})
}

// TestEnsureStopsWithItsParent shows that nothing is applied for a parent that is deleted and created again during
// the handler call.
func TestEnsureStopsWithItsParent(t *testing.T) {
	withEnsureFixture(t, func(h ensureFixture) {
		var once sync.Once
		_, stop := h.run(func(s kopf.Selection[*kopf.Unstructured]) {
			s.On("ensure", nonDeleteReasons, func(ctx context.Context, c *kopf.Change[*kopf.Unstructured]) error {
				once.Do(func() {
					h.api.Discard(houses, "default", "home")
					go h.createHouse("a=new")
					time.Sleep(time.Second)
				})
				return ensure(ctx, c)
			})
		})
		defer stop()
		h.createHouseAndWait("a=old", "b=old")
		h.settle()
		if value, _, _ := nested(h.room("default", "a"), "data", "value"); value != "new" ||
			h.owner("default", "a") != h.house().GetUID() || h.room("default", "b") != nil {
			t.Errorf("only the children of the new parent exist: a is %q of %q, b is %v",
				value, h.owner("default", "a"), h.room("default", "b"))
		}
	})
}

// TestEnsureTakesOverOrphansThatAreGivenToIt shows that orphans of a deleted parent are taken over once a user
// gives them the label of the new parent.
func TestEnsureTakesOverOrphansThatAreGivenToIt(t *testing.T) {
	withEnsureFixture(t, func(h ensureFixture) {
		heard, stop := h.runRecordingErrors()
		defer stop()
		h.createHouseAndWait("a=1")
		h.api.Edit(settings, "default", "a", func(room map[string]any) { // as the garbage collector does
			(&unstructured.Unstructured{Object: room}).SetOwnerReferences(nil)
		})
		h.api.Discard(houses, "default", "home")
		h.createHouseAndWait("a=2")
		heard.requireLast(t, "child of another object", "give it the label test.example.org/parent-uid")
		now := h.house().GetUID()
		h.api.Edit(settings, "default", "a", func(room map[string]any) {
			ours := map[string]string{"test.example.org/parent-uid": string(now)}
			(&unstructured.Unstructured{Object: room}).SetLabels(ours)
		})
		h.settle()
		value, _, _ := nested(h.room("default", "a"), "data", "value")
		if owner := h.owner("default", "a"); value != "2" || owner != now {
			t.Errorf("the labelled orphan is taken over: a is %q, owner %q, error %v", value, owner, heard.last())
		}
	})
}
