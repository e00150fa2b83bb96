package kopf_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

// editCondition sets the fields of the condition of the type, or adds the condition.
func editCondition(house map[string]any, conditionType string, fields map[string]any) {
	list, _, _ := unstructured.NestedSlice(house, "status", "conditions")
	at := slices.IndexFunc(list, func(item any) bool { return item.(map[string]any)["type"] == conditionType })
	if at < 0 {
		at, list = len(list), append(list, map[string]any{"type": conditionType})
	}
	for name, value := range fields {
		list[at].(map[string]any)[name] = value
	}
	_ = unstructured.SetNestedSlice(house, list, "status", "conditions")
}

// TestConditionsThatOthersEdit shows that the framework's conditions that another client edits are kept until a
// handler has a new outcome or a new generation is observed. No handler is called for the edit, and two clients do
// not overwrite each other endlessly.
func TestConditionsThatOthersEdit(t *testing.T) {
	for name, c := range map[string]struct {
		reason string
		edit   func(house map[string]any)
	}{
		"another Ready": {"a changed Ready condition is restored with the next change", func(house map[string]any) {
			editCondition(house, "Ready", map[string]any{"status": "False", "reason": "Other", "message": "by hand"})
		}},
		"no Ready": {"a removed Ready condition is restored with the next change", func(house map[string]any) {
			_ = unstructured.SetNestedSlice(house, nil, "status", "conditions")
		}},
		"no status": {
			"a removed status is restored with the next change",
			func(house map[string]any) { delete(house, "status") }},
		"an old generation": {
			"a lower observed generation is corrected with the next change", func(house map[string]any) {
				editCondition(house, "Ready", map[string]any{"observedGeneration": int64(0)})
				_ = unstructured.SetNestedField(house, int64(0), "status", "observedGeneration")
			}},
		"a generation to come": {
			"a higher observed generation is corrected with the next change", func(house map[string]any) {
				editCondition(house, "Ready", map[string]any{"observedGeneration": int64(99)})
				_ = unstructured.SetNestedField(house, int64(99), "status", "observedGeneration")
			}},
		"Reconciling": {"a foreign Reconciling condition is removed with the next change", func(house map[string]any) {
			editCondition(house, "Reconciling", map[string]any{"status": "True", "reason": "Other"})
		}},
		"Ready twice": {"a duplicate Ready condition is removed with the next change", func(house map[string]any) {
			list, _, _ := unstructured.NestedSlice(house, "status", "conditions")
			_ = unstructured.SetNestedSlice(house, append(list, list...), "status", "conditions")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			withConditionFixture(t, nil, func(e conditionFixture) {
				seen := &journal{}
				way, _, stop := e.run(func(s houseSel) {
					s.Conditions()
					s.OnField("resize", "spec.size", func(context.Context, *dynamicChange) error {
						seen.add("resize")
						return nil
					})
				})
				defer stop()
				e.createHouse(map[string]any{"size": int64(1)})
				way.DrainRequests()
				stubborn := true
				way.After = func(_ context.Context, r memapi.Request) error {
					if stubborn && r.Subresource == "status" {
						e.api.Edit(e.houses, "default", "home", c.edit)
					}
					return nil
				}
				e.edit(c.edit)
				time.Sleep(time.Hour)
				e.settle()
				if n := countStatus(way); n > 1 {
					t.Errorf("%s: %d writes of the status in an hour, want one at most", c.reason, n)
				}
				stubborn = false
				e.edit(resize(2))
				e.expect("after a change", "Ready=True Succeeded@2: all handlers have succeeded", "observed 2 of 2")
				if n := countStatus(way); n != 1 {
					t.Errorf("%s: got %d writes of the status for a change, want one", c.reason, n)
				}
				seen.requireLines(t, "resize", "resize")
			})
		})
	}
}

// TestOwnConditionsStay shows that a handler's own condition and those of other clients are kept across restarts
// and changes. A timer writes its condition again if another client has changed it, once per call.
func TestOwnConditionsStay(t *testing.T) {
	withConditionFixture(t, nil, func(e conditionFixture) {
		register := func(s houseSel) {
			s.Conditions()
			s.OnCreate("create", func(_ context.Context, c *dynamicChange) error {
				c.Condition("Created", metav1.ConditionTrue, "Made", "by us")
				return nil
			})
			s.OnUpdate("update", func(context.Context, *dynamicChange) error { return nil })
			s.Timer("look", time.Minute, func(_ context.Context, r *kopf.Task[*kopf.Unstructured]) error {
				r.Condition("Up", metav1.ConditionTrue, "Answers", "")
				return nil
			})
		}
		way, _, stop := e.run(register)
		e.createHouse(map[string]any{"size": int64(1)})
		theirs := map[string]any{"status": "False", "reason": "Other", "message": "theirs", "more": "unknown to us"}
		e.edit(func(house map[string]any) { editCondition(house, "Theirs", theirs) })
		before := e.conditions()
		for range 2 {
			stop()
			way, _, stop = e.run(register)
			time.Sleep(time.Hour)
			e.settle()
			if n := countStatus(way); n > 0 {
				t.Errorf("a restart without new outcomes does not write the status: got %d writes", n)
			}
		}
		if d := cmp.Diff(before, e.conditions()); d != "" {
			t.Errorf("two restarts keep all conditions: -want, +got:\n%s", d)
		}
		e.edit(resize(2))
		after := e.conditions()
		for _, held := range []string{"Created", "Theirs"} {
			if d := cmp.Diff(before[held], after[held]); d != "" || after[held] == nil {
				t.Errorf("the condition %s is kept after a change: -want, +got:\n%s", held, d)
			}
		}
		way.DrainRequests()
		way.After = func(_ context.Context, r memapi.Request) error {
			if r.Subresource == "status" {
				e.api.Edit(e.houses, "default", "home", func(house map[string]any) {
					editCondition(house, "Up", map[string]any{"status": "Unknown"})
				})
			}
			return nil
		}
		e.edit(func(house map[string]any) { editCondition(house, "Up", map[string]any{"status": "Unknown"}) })
		time.Sleep(10 * time.Minute)
		e.settle()
		if n := countStatus(way); n < 9 || n > 11 {
			t.Errorf("a timer restores its condition once per call: got %d writes in ten calls", n)
		}
		stop()
	})
}

// conditions returns the conditions of the house by their types.
func (e conditionFixture) conditions() map[string]any {
	list, _, _ := unstructured.NestedSlice(e.house().Object, "status", "conditions")
	all := map[string]any{}
	for _, item := range list {
		held, _ := item.(map[string]any)
		name, _ := held["type"].(string)
		all[name] = held
	}
	return all
}
