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
