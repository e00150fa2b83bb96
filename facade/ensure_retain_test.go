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

// A retained child has no owner, holds nothing, and is never deleted, wherever it is and whatever the records say.
func TestEnsureRetain(t *testing.T) {
	inHousehold(t, func(h household) {
		_, stop := h.run(func(s houseSel) { s.On("ensure", always, ruled(retain)) })
		h.build("a=1", "yard/d=1", "c=1")
		if owner, held := h.owner("default", "a"), h.house().GetFinalizers(); owner != "nobody" || len(held) > 0 {
			t.Errorf("the owner is %q, the finalizers are %v", owner, held)
		}
		if got := h.room("yard", "d").GetAnnotations()[retainedBy]; got != "House.test.example.org default/home" {
			t.Errorf("it is retained by %q", got)
		}
		h.rebuild("a=2", "yard/d=2")
		h.requireRooms("undeclared children stay", "default/a", "default/c", "yard/d")
		if got := h.value("default", "a"); got != "2" {
			t.Errorf("a retained child is applied: got %q", got)
		}
		h.rebuild("a=2", "yard/d=2", "c=3")
		if got := h.value("default", "c"); got != "3" {
			t.Errorf("it is taken again by its own parent: got %q", got)
		}
		stop()
	})
}

// Another object of the name takes over what a former one has left, if it says so, and nothing else.
func TestEnsureAdoptsRetained(t *testing.T) {
	inHousehold(t, func(h household) {
		heard := &complaints{}
		rule := retain
		_, stop := h.run(func(s houseSel) {
			s.On("ensure", always, heard.noting(ruled(func(child any) any { return rule(child) })))
		})
		defer stop()
		h.build("a=1", "yard/d=1")
		former := h.house().GetUID()
		h.api.Delete(houses, "default", "home")
		h.settle()
		h.requireRooms("the parent is gone", "default/a", "yard/d")
		if h.api.Object(houses, "default", "home") != nil {
			t.Errorf("the parent is held: %v", h.house())
		}
		h.build("a=2", "yard/d=2")
		heard.wantLast(t, "ConfigMap default/a", string(former), "kopf.AdoptFormer")
		if got := h.value("default", "a"); got != "1" {
			t.Errorf("it was adopted without the option: %q", got)
		}
		rule = func(child any) any { return kopf.Retain(kopf.Once(child), kopf.AdoptFormer()) }
		h.rebuild("yard/d=3")
		if got := h.room("yard", "d").GetLabels()[parentLabel]; got != string(h.house().GetUID()) {
			t.Errorf("a child that is made once is not adopted: %q, %v", got, heard.last())
		}
		rule = retainAdopting
		h.put("guest", "theirs")
		h.rebuild("a=3", "yard/d=3", "guest=1")
		heard.wantLast(t, "ConfigMap default/guest", "not a child of this parent")
		h.rebuild("a=3", "yard/d=4")
		if a, d := h.value("default", "a"), h.value("yard", "d"); a != "3" || d != "4" || heard.last() != nil {
			t.Errorf("the children are %q and %q: %v", a, d, heard.last())
		}
		if got := h.room("default", "a").GetLabels()[parentLabel]; got != string(h.house().GetUID()) {
			t.Errorf("the parent is %q", got)
		}
	})
}

// The record is lost, or says that a retained child is to go: the child itself says that it stays.
func TestEnsureRetainsWhatTheRecordMisses(t *testing.T) {
	inHousehold(t, func(h household) {
		_, stop := h.run(func(s houseSel) { s.On("ensure", always, ruled(retain)) })
		h.build("a=1", "yard/d=1")
		stop()
		h.api.Edit(houses, "default", "home", func(house map[string]any) {
			one := &unstructured.Unstructured{Object: house}
			annotations := one.GetAnnotations()
			annotations[houseRecord] = `{"parent":"` + string(one.GetUID()) +
				`","children":{"v1/ConfigMap/default/a":"","v1/ConfigMap/yard/d":""}}`
			one.SetAnnotations(annotations)
		})
		_, stop = h.runEnsure()
		h.rebuild("c=1")
		h.requireRooms("the record lists them for pruning", "default/a", "default/c", "yard/d")
		h.api.Delete(houses, "default", "home")
		h.settle()
		h.requireRooms("the parent is gone", "default/a", "default/c", "yard/d")
		stop()
	})
}

// A process that has not applied the children reads from them, not from the record, that they are to be retained. An
// object without the finalizer does not get it for them.
func TestEnsureRetainsAfterARestart(t *testing.T) {
	for name, tc := range map[string]struct {
		isHeld bool // by a deletion handler
	}{"Held": {true}, "Free": {false}} {
		t.Run(name, func(t *testing.T) {
			inHousehold(t, func(h household) {
				created := []kopf.Reason{kopf.ReasonCreate} // Ensure is not called after the restart
				start := func() func() {
					_, stop := h.run(func(s houseSel) {
						s.On("ensure", created, ruled(retain))
						if tc.isHeld {
							s.OnDelete("bye", func(context.Context, *houseChange) error { return nil })
						}
					})
					return stop
				}
				stop := start()
				h.build("a=1", "yard/b=1", "yard/c=1", "yard/d=1")
				stop()
				version := h.house().GetResourceVersion()
				stop = start()
				h.settle()
				if h.house().GetResourceVersion() != version {
					t.Errorf("the restart writes the parent: %v", h.house())
				}
				h.api.Delete(houses, "default", "home")
				h.settle()
				for _, child := range []string{"b", "c", "d"} {
					if h.room("yard", child) == nil {
						t.Errorf("%s is deleted with the parent", child)
					}
				}
				if h.api.Object(houses, "default", "home") != nil {
					t.Errorf("the parent is held: %v", h.house())
				}
				stop()
			})
		})
	}
}

// A child that is not to be retained any more is owned and pruned like others.
func TestEnsureNoLongerRetains(t *testing.T) {
	inHousehold(t, func(h household) {
		rule := retain
		_, stop := h.run(func(s houseSel) {
			s.On("ensure", always, ruled(func(child any) any { return rule(child) }))
		})
		defer stop()
		h.build("a=1", "yard/d=1")
		rule = func(child any) any { return child }
		h.rebuild("a=2", "yard/d=2")
		owner, held := h.owner("default", "a"), h.house().GetFinalizers()
		if owner != h.house().GetUID() || len(held) == 0 {
			t.Errorf("the owner is %q, the finalizers are %v", owner, held)
		}
		h.rebuild()
		h.requireRooms("nothing is declared")
	})
}

// A child that was made once becomes a retained one, though it was created and not applied: it must not be deleted
// with the object.
func TestEnsureRetainsWhatWasMadeOnce(t *testing.T) {
	inHousehold(t, func(h household) {
		rule := kopf.Once
		_, stop := h.run(func(s houseSel) {
			s.On("ensure", always, ruled(func(child any) any { return rule(child) }))
		})
		defer stop()
		h.build("a=1", "b=1")
		rule = retain
		h.rebuild("a=2", "b=1")
		if a, b := h.owner("default", "a"), h.owner("default", "b"); a != "nobody" || b != "nobody" {
			t.Errorf("the owners are %q and %q", a, b)
		}
		if got := h.value("default", "a"); got != "2" {
			t.Errorf("it is not applied: %q", got)
		}
	})
}
