package kopf_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

// TestConditionsCallNoHandler shows that changes of the framework's conditions call no handler, not even a handler of
// that field. Conditions of other clients do. Deviation: D-conditions.
func TestConditionsCallNoHandler(t *testing.T) {
	withConditionFixture(t, nil, func(e conditionFixture) {
		seen := &journal{}
		way, _, stop := e.run(func(s kopf.Selection[*kopf.Unstructured]) {
			s.Conditions()
			for _, field := range []string{"status", "status.conditions", "status.observedGeneration"} {
				s.OnField("see", field, func(_ context.Context, c *dynamicChange) error {
					if seen.add(c.ID); c.Reason == kopf.ReasonCreate && c.Retry == 0 {
						return kopf.Temporary(errors.New("later"), time.Minute)
					}
					return nil
				})
			}
		})
		defer stop()
		e.createHouse(map[string]any{"size": int64(1)})
		time.Sleep(time.Hour)
		e.settle()
		e.edit(resize(2))
		if d := cmp.Diff("observed 2 of 2", e.summary()[len(e.summary())-1]); d != "" {
			t.Errorf("the last generation is observed: -want, +got:\n%s", d)
		}
		seen.requireLines(t) // nothing
		e.edit(func(house map[string]any) {
			list, _, _ := unstructured.NestedSlice(house, "status", "conditions")
			list = append(list, map[string]any{"type": "Other", "status": "True"})
			house["status"].(map[string]any)["conditions"] = list
		})
		time.Sleep(time.Hour)
		e.settle()
		// Each handler is retried once, and the retry is recorded as well.
		seen.requireLines(t, "see/status", "see/status.conditions", "see/status", "see/status.conditions")
		if n := len(writes(way)); n > 20 {
			t.Errorf("conditions cause few writes: got %d", n)
		}
	})
}

// TestConditionsOfOthersSurviveConflicts shows that conditions that another client writes between a handler and the
// write of its outcome are kept.
func TestConditionsOfOthersSurviveConflicts(t *testing.T) {
	withConditionFixture(t, nil, func(e conditionFixture) {
		edits := 0
		way, _, stop := e.run(func(s kopf.Selection[*kopf.Unstructured]) {
			s.Conditions()
			s.OnCreate("create", func(_ context.Context, c *dynamicChange) error {
				c.Condition("Up", "True", "Answers", "")
				c.Patch(func(house *kopf.Unstructured) { _ = kopf.SetField(house, "status.phase", "up") })
				return nil
			})
		})
		defer stop()
		way.Before = func(_ context.Context, r memapi.Request) error {
			if r.Verb == "patch" && edits < 2 {
				edits++
				e.api.Edit(e.houses, "default", "home", func(house map[string]any) {
					list, _, _ := unstructured.NestedSlice(house, "status", "conditions")
					list = append(list, map[string]any{"type": fmt.Sprintf("Other%d", edits), "status": "True"})
					house["status"] = map[string]any{"conditions": list}
				})
			}
			return nil
		}
		e.createHouse(map[string]any{"size": int64(1)})
		e.expect("after two conflicts", "Other1=True <nil>@<nil>: <nil>", "Other2=True <nil>@<nil>: <nil>",
			"Up=True Answers@1: ", "Ready=True Succeeded@1: all handlers have succeeded", "observed 1 of 1")
		want := []string{"patch houses/status", "patch houses/status", "patch houses/status", "patch houses"}
		if d := cmp.Diff(want, writes(way)); d != "" {
			t.Errorf("writes: -want, +got:\n%s", d)
		}
		if phase := kopf.GetFieldOr(e.house(), "status.phase", ""); phase != "up" {
			t.Errorf("the handler's own status is written: got %q", phase)
		}
	})
}

// TestConditionsAreNotFoughtFor shows that removed conditions are restored at most once, and that two operators
// with the same condition types do not overwrite each other endlessly.
func TestConditionsAreNotFoughtFor(t *testing.T) {
	withConditionFixture(t, nil, func(e conditionFixture) {
		done := func(context.Context, *dynamicChange) error { return nil }
		way, _, stop := e.run(func(s kopf.Selection[*kopf.Unstructured]) { s.Conditions(); s.OnCreate("create", done) })
		defer stop()
		other, _, stopOther := e.runAs("other.example.org", func(s kopf.Selection[*kopf.Unstructured]) {
			s.Conditions()
			s.OnCreate("later", func(context.Context, *dynamicChange) error {
				return kopf.Temporary(errors.New("later"), time.Minute)
			})
		})
		defer stopOther()
		e.createHouse(map[string]any{"size": int64(1)})
		time.Sleep(10 * time.Minute)
		e.settle()
		if n, m := countStatus(way), countStatus(other); n > 10 || m > 30 {
			t.Errorf("two operators cause few status writes: got %d and %d in 10 retries", n, m)
		}
		for range 20 {
			e.edit(func(house map[string]any) { delete(house, "status") })
		}
		if n, m := countStatus(way), countStatus(other); n > 10 || m > 10 {
			t.Errorf("removed conditions cause few status writes: got %d and %d for 20 removals", n, m)
		}
	})
}

// TestConditionsWithADomain shows that a domain separates the framework's Ready condition from a Ready condition of
// a handler.
func TestConditionsWithADomain(t *testing.T) {
	withConditionFixture(t, nil, func(e conditionFixture) {
		_, _, stop := e.run(func(s kopf.Selection[*kopf.Unstructured]) {
			s.OnCreate("create", func(_ context.Context, c *dynamicChange) error {
				c.Condition("Ready", "Unknown", "Asked", "by the handler")
				return nil
			})
		}, kopf.Settings{Conditions: true, ConditionsDomain: "a.example.org"})
		defer stop()
		e.createHouse(map[string]any{"size": int64(1)})
		e.expect("with a domain", "Ready=Unknown Asked@1: by the handler",
			"a.example.org/Ready=True Succeeded@1: all handlers have succeeded", "observed 0 of 1")
	})
}
