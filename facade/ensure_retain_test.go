package kopf_test

import (
	"context"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

const retainedBy = "test.example.org/retained-by"

func retainAdopting(child any) any { return kopf.Retain(child, kopf.AdoptFormer()) }

func retain(child any) any { return kopf.Retain(child) }

// TestEnsureRetain shows that a retained child has no owner, adds no finalizer to the parent, and is not pruned, in
// any namespace.
func TestEnsureRetain(t *testing.T) {
	withEnsureFixture(t, func(h ensureFixture) {
		_, stop := h.run(func(s houseSel) { s.On("ensure", nonDeleteReasons, ensureWith(retain)) })
		h.createHouseAndWait("a=1", "yard/d=1", "c=1")
		if owner, held := h.owner("default", "a"), h.house().GetFinalizers(); owner != "nobody" || len(held) > 0 {
			t.Errorf("a retained child has no owner and its parent no finalizer: got owner %q, finalizers %v",
				owner, held)
		}
		if got := h.room("yard", "d").GetAnnotations()[retainedBy]; got != "House.test.example.org default/home" {
			t.Errorf("an annotation of the child names the parent: got %q", got)
		}
		h.changeRooms("a=2", "yard/d=2")
		h.requireRooms("undeclared children stay", "default/a", "default/c", "yard/d")
		if got := h.value("default", "a"); got != "2" {
			t.Errorf("a retained child is applied: got %q", got)
		}
		h.changeRooms("a=2", "yard/d=2", "c=3")
		if got := h.value("default", "c"); got != "3" {
			t.Errorf("its own parent can declare a retained child again: got %q", got)
		}
		stop()
	})
}

// TestEnsureAdoptsRetained shows that a new parent with the same name takes over retained children only with
// AdoptFormer, and no other objects.
func TestEnsureAdoptsRetained(t *testing.T) {
	withEnsureFixture(t, func(h ensureFixture) {
		heard := &ensureErrors{}
		rule := retain
		_, stop := h.run(func(s houseSel) {
			s.On("ensure", nonDeleteReasons, heard.noting(ensureWith(func(child any) any { return rule(child) })))
		})
		defer stop()
		h.createHouseAndWait("a=1", "yard/d=1")
		former := h.house().GetUID()
		h.api.Delete(houses, "default", "home")
		h.settle()
		h.requireRooms("the parent is gone", "default/a", "yard/d")
		if h.api.Object(houses, "default", "home") != nil {
			t.Errorf("retained children do not delay the deletion of the parent: got %v", h.house())
		}
		h.createHouseAndWait("a=2", "yard/d=2")
		heard.requireLast(t, "ConfigMap default/a", string(former), "kopf.AdoptFormer")
		if got := h.value("default", "a"); got != "1" {
			t.Errorf("without AdoptFormer, the child is not adopted: got %q", got)
		}
		rule = func(child any) any { return kopf.Retain(kopf.Once(child), kopf.AdoptFormer()) }
		h.changeRooms("yard/d=3")
		if got := h.room("yard", "d").GetLabels()[parentLabel]; got != string(h.house().GetUID()) {
			t.Errorf("a child with Once is adopted: got %q, error %v", got, heard.last())
		}
		rule = retainAdopting
		h.putConfigMap("guest", "theirs")
		h.changeRooms("a=3", "yard/d=3", "guest=1")
		heard.requireLast(t, "ConfigMap default/guest", "not a child of this parent")
		h.changeRooms("a=3", "yard/d=4")
		if a, d := h.value("default", "a"), h.value("yard", "d"); a != "3" || d != "4" || heard.last() != nil {
			t.Errorf("the adopted children are updated: got %q and %q, error %v", a, d, heard.last())
		}
		if got := h.room("default", "a").GetLabels()[parentLabel]; got != string(h.house().GetUID()) {
			t.Errorf("the label of an adopted child names the new parent: got %q", got)
		}
	})
}

// TestEnsureRetainsWhatTheRecordMisses shows that a retained child is kept even if the record is lost or lists the
// child for pruning, as its own annotation counts.
func TestEnsureRetainsWhatTheRecordMisses(t *testing.T) {
	withEnsureFixture(t, func(h ensureFixture) {
		_, stop := h.run(func(s houseSel) { s.On("ensure", nonDeleteReasons, ensureWith(retain)) })
		h.createHouseAndWait("a=1", "yard/d=1")
		stop()
		h.api.Edit(houses, "default", "home", func(house map[string]any) {
			one := &unstructured.Unstructured{Object: house}
			annotations := one.GetAnnotations()
			annotations[houseRecord] = `{"parent":"` + string(one.GetUID()) +
				`","children":{"v1/ConfigMap/default/a":"","v1/ConfigMap/yard/d":""}}`
			one.SetAnnotations(annotations)
		})
		_, stop = h.runEnsure()
		h.changeRooms("c=1")
		h.requireRooms("retained children are kept in spite of the record", "default/a", "default/c", "yard/d")
		h.api.Delete(houses, "default", "home")
		h.settle()
		h.requireRooms("the operator deletes no children with the parent", "default/a", "default/c", "yard/d")
		stop()
	})
}

// TestEnsureRetainsAfterARestart shows that a process that has not applied the children reads from the children,
// not from the record, that they are retained. A parent without the finalizer does not get it.
func TestEnsureRetainsAfterARestart(t *testing.T) {
	for name, tc := range map[string]struct {
		isHeld bool // by the finalizer of a delete handler
	}{"Held": {true}, "Free": {false}} {
		t.Run(name, func(t *testing.T) {
			withEnsureFixture(t, func(h ensureFixture) {
				created := []kopf.Reason{kopf.ReasonCreate} // Ensure is not called after the restart
				start := func() func() {
					_, stop := h.run(func(s houseSel) {
						s.On("ensure", created, ensureWith(retain))
						if tc.isHeld {
							s.OnDelete("bye", func(context.Context, *houseChange) error { return nil })
						}
					})
					return stop
				}
				stop := start()
				h.createHouseAndWait("a=1", "yard/b=1", "yard/c=1", "yard/d=1")
				stop()
				version := h.house().GetResourceVersion()
				stop = start()
				h.settle()
				if h.house().GetResourceVersion() != version {
					t.Errorf("the restart does not write the parent: got %v", h.house())
				}
				h.api.Delete(houses, "default", "home")
				h.settle()
				for _, child := range []string{"b", "c", "d"} {
					if h.room("yard", child) == nil {
						t.Errorf("%s is kept when the parent is deleted", child)
					}
				}
				if h.api.Object(houses, "default", "home") != nil {
					t.Errorf("the parent is deleted: got %v", h.house())
				}
				stop()
			})
		})
	}
}

// TestEnsureNoLongerRetains shows that a child that is no longer retained is owned and pruned like other children.
func TestEnsureNoLongerRetains(t *testing.T) {
	withEnsureFixture(t, func(h ensureFixture) {
		rule := retain
		_, stop := h.run(func(s houseSel) {
			s.On("ensure", nonDeleteReasons, ensureWith(func(child any) any { return rule(child) }))
		})
		defer stop()
		h.createHouseAndWait("a=1", "yard/d=1")
		rule = func(child any) any { return child }
		h.changeRooms("a=2", "yard/d=2")
		owner, held := h.owner("default", "a"), h.house().GetFinalizers()
		if owner != h.house().GetUID() || len(held) == 0 {
			t.Errorf("the child is owned, and its parent has the finalizer: got owner %q, finalizers %v", owner, held)
		}
		h.changeRooms()
		h.requireRooms("undeclared children are deleted")
	})
}

// TestEnsureRetainsWhatWasMadeOnce shows that a child with Once, which was created and not applied, can become a
// retained child that is not deleted with its parent.
func TestEnsureRetainsWhatWasMadeOnce(t *testing.T) {
	withEnsureFixture(t, func(h ensureFixture) {
		rule := kopf.Once
		_, stop := h.run(func(s houseSel) {
			s.On("ensure", nonDeleteReasons, ensureWith(func(child any) any { return rule(child) }))
		})
		defer stop()
		h.createHouseAndWait("a=1", "b=1")
		rule = retain
		h.changeRooms("a=2", "b=1")
		if a, b := h.owner("default", "a"), h.owner("default", "b"); a != "nobody" || b != "nobody" {
			t.Errorf("retained children have no owners: got %q and %q", a, b)
		}
		if got := h.value("default", "a"); got != "2" {
			t.Errorf("the retained child is applied: got %q", got)
		}
	})
}
