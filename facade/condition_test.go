package kopf_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

// TestOwnConditions shows that a handler's own condition is visible in its object and to later handlers, and that
// its transition time changes only with its status, for handlers of all families.
func TestOwnConditions(t *testing.T) {
	withConditionFixture(t, nil, func(e conditionFixture) {
		seen := &journal{}
		up := func(o *kopf.Unstructured) string {
			list := kopf.GetFieldOr(o, "status.conditions", []metav1.Condition(nil))
			for _, c := range list {
				if c.Type == "Up" {
					return string(c.Status) + " " + c.Reason
				}
			}
			return "nothing"
		}
		way, _, stop := e.run(func(s kopf.Selection[*kopf.Unstructured]) {
			s.OnCreate("first", func(_ context.Context, c *dynamicChange) error {
				c.Condition("Up", metav1.ConditionFalse, "Starts", "in a moment")
				seen.add(up(c.Object))
				return nil
			})
			s.OnCreate("second", func(_ context.Context, c *dynamicChange) error { seen.add(up(c.Object)); return nil })
			s.OnEvent("event", func(_ context.Context, ev *kopf.WatchEvent[*kopf.Unstructured]) error {
				ev.Condition("Seen", metav1.ConditionTrue, "Event", "")
				return nil
			})
			ticks := 0
			s.Timer("tick", time.Minute, func(_ context.Context, r *kopf.Task[*kopf.Unstructured]) error {
				if ticks++; ticks < 3 {
					r.Condition("Up", metav1.ConditionFalse, "Starts", "still")
				} else {
					r.Condition("Up", metav1.ConditionTrue, "Answers", "")
				}
				return nil
			}, kopf.InitialDelay(time.Minute))
		})
		defer stop()
		e.createHouse(map[string]any{"size": int64(1)})
		seen.requireLines(t, "False Starts", "False Starts")
		began := e.transitionTime("Up")
		time.Sleep(2 * time.Minute)
		e.settle()
		if e.transitionTime("Up") != began {
			t.Errorf("the transition time is kept without a change of the status: got %s, then %s",
				began, e.transitionTime("Up"))
		}
		time.Sleep(time.Minute)
		e.settle()
		e.expect("after the status has changed", "Seen=True Event@1: ", "Up=True Answers@1: ", "observed 0 of 1")
		if e.transitionTime("Up") == began {
			t.Error("the transition time changes with the status")
		}
		writes(way)
		time.Sleep(time.Hour)
		e.settle()
		if n := len(writes(way)); n != 0 {
			t.Errorf("an unchanged condition is not written: got %d writes", n)
		}
	})
}

// TestInvalidOwnConditions shows that an invalid condition fails the handler permanently, with an error that
// names the object, the handler and the field.
func TestInvalidOwnConditions(t *testing.T) {
	text := func(field string) string {
		return `setting a condition of object default/home by handler "create": ` + field
	}
	for name, c := range map[string]struct {
		reason string
		edit   func(r *memapi.Resource)
		set    func(c *dynamicChange)
		want   string
	}{
		"type": {"a condition type with a blank is an error", nil, func(c *dynamicChange) {
			c.Condition("Is up", metav1.ConditionTrue, "Up", "")
		}, text(`type "Is up"`)},
		"one of the framework's": {"a condition type of the framework is an error", nil, func(c *dynamicChange) {
			c.Condition("Ready", metav1.ConditionTrue, "Up", "")
		}, text(`type "Ready": it reports on the handlers`)},
		"in a sub-handler": {"the error of a sub-handler names the sub-handler", nil, func(c *dynamicChange) {
			c.Sub("part", func(_ context.Context, c *dynamicChange) error {
				c.Condition("Stalled", metav1.ConditionTrue, "Up", "")
				return nil
			})
			_ = c.RunSubs(t.Context())
		}, `handler "create/part": type "Stalled": it reports on the handlers`},
		"no subresource": {
			"a kind without the status subresource is an error",
			func(r *memapi.Resource) { r.StatusSubresource = false },
			func(c *dynamicChange) { c.Condition("Up", metav1.ConditionTrue, "Up", "") },
			text("the status of the kind is not a subresource")},
		"a status of another shape": {"a status that is not a mapping is an error", nil, func(c *dynamicChange) {
			c.Patch(func(o *kopf.Unstructured) { o.Object["status"] = []any{} })
			c.Condition("Up", metav1.ConditionTrue, "Up", "")
		}, text("the status of the object is not a mapping")},
	} {
		t.Run(name, func(t *testing.T) {
			withConditionFixture(t, c.edit, func(e conditionFixture) {
				_, log, stop := e.run(func(s kopf.Selection[*kopf.Unstructured]) {
					s.Conditions()
					s.OnCreate("create", func(_ context.Context, change *dynamicChange) error {
						c.set(change)
						return nil
					})
				})
				defer stop()
				e.createHouse(map[string]any{"size": int64(1)})
				told := log.with("Handler failed permanently")
				if len(told) == 0 || !strings.Contains(strings.ReplaceAll(told[0], `\"`, `"`), c.want) {
					t.Errorf("%s: got the log lines %q, want %q in the first", c.reason, told, c.want)
				}
			})
		})
	}
}

// TestOwnConditionsInFilters shows that a filter must not set conditions.
func TestOwnConditionsInFilters(t *testing.T) {
	withConditionFixture(t, nil, func(e conditionFixture) {
		_, log, stop := e.run(func(s kopf.Selection[*kopf.Unstructured]) {
			s.OnCreate("create", func(context.Context, *dynamicChange) error { return nil }, kopf.WhenChange(
				func(_ context.Context, c *dynamicChange) bool {
					c.Condition("Up", metav1.ConditionTrue, "Up", "")
					return true
				},
			))
		})
		defer stop()
		e.createHouse(nil)
		if d := cmp.Diff([]string{"observed 0 of 1"}, e.summary()); d != "" ||
			len(log.with("a filter can neither")) == 0 {
			t.Errorf("a condition set by a filter is logged and not written: -want, +got:\n%s", d)
		}
	})
}
