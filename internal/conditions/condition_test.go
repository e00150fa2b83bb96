package conditions_test

import (
	"cmp"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/internal/conditions"
)

func TestCheck(t *testing.T) {
	for name, c := range map[string]struct {
		reason    string
		condition conditions.Condition
		want      string
	}{
		"usual":    {"a condition with common values is valid", conditions.Condition{}, ""},
		"a domain": {"a type may have a domain as its prefix", conditions.Condition{Type: "a.example.org/Ready"}, ""},
		"a reason with colons": {
			"a reason may contain colons and underscores", conditions.Condition{Reason: "Pod:Up_1"}, "",
		},
		"a type with a blank": {"a type must not contain blanks", conditions.Condition{Type: "Is up"}, `type "Is up"`},
		"no domain": {"a type with an empty domain is an error", conditions.Condition{Type: "/Up"},
			`type "/Up"`},
		"a long type": {
			"a type over the length limit is an error", conditions.Condition{Type: strings.Repeat("a", 400)},
			`type "aaaa`,
		},
		"a bool": {"a status in the spelling of a Go bool is an error", conditions.Condition{Status: "true"},
			`status "true"`},
		"a text":   {"a reason with blanks is an error", conditions.Condition{Reason: "no quota"}, `reason "no quota"`},
		"a number": {"a reason must begin with a letter", conditions.Condition{Reason: "404"}, `reason "404"`},
		"a long message": {"a message over the limit is valid, because Set cuts it",
			conditions.Condition{Message: strings.Repeat("x", 99999)}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			c.condition.Type, c.condition.Status = cmp.Or(c.condition.Type, "Up"),
				cmp.Or(c.condition.Status, conditions.True)
			c.condition.Reason = cmp.Or(c.condition.Reason, "Answers")
			err := c.condition.CheckFields()
			if (err == nil) != (c.want == "") || err != nil && !strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("%s: %v", c.reason, err)
			}
		})
	}
}

func TestCheckNothing(t *testing.T) {
	if err := (conditions.Condition{Status: "True", Reason: "Answers"}).CheckFields(); err == nil {
		t.Error("a condition without a type must be an error")
	}
	if err := (conditions.Condition{Type: "Up", Status: "True"}).CheckFields(); err == nil {
		t.Error("a condition without a reason must be an error")
	}
}

func TestSet(t *testing.T) {
	body := objectWithStatus(nil)
	down := conditions.Condition{Type: "Up", Status: "False", Reason: "Starts", Message: "wait", Generation: 2}
	if err := conditions.SetCondition(body, down, now); err != nil {
		t.Fatal(err)
	}
	first := body["status"]
	want := map[string]any{"conditions": []any{conditionItem("Up", "False", "Starts", "wait", nowText)}}
	if d := gocmp.Diff(want, body["status"]); d != "" {
		t.Errorf("the first call: -want, +got:\n%s", d)
	}
	down.Reason, down.Message = "Loads", strings.Repeat("x", 99999)
	if err := conditions.SetCondition(body, down, now.AddDate(1, 0, 0)); err != nil {
		t.Fatal(err)
	}
	if d := gocmp.Diff(want, first); d != "" {
		t.Errorf("Set must not change the status that it was given:\n%s", d)
	}
	status, _ := body["status"].(map[string]any)
	list, _ := status["conditions"].([]any)
	held, _ := list[0].(map[string]any)
	message, _ := held["message"].(string)
	if held["lastTransitionTime"] != nowText || held["reason"] != "Loads" || len(message) != 32768 {
		t.Errorf("want the former time and a message that is cut: %v, %d", held["lastTransitionTime"], len(message))
	}
	for _, odd := range []any{"up", map[string]any{"conditions": map[string]any{}}} {
		if err := conditions.SetCondition(objectWithStatus(odd), down, now); err == nil {
			t.Errorf("Set must reject the status %v", odd)
		}
	}
}

func TestNamed(t *testing.T) {
	own, err := conditions.NewTypes("a.example.org")
	if d := gocmp.Diff([]string{
		"a.example.org/Ready", "a.example.org/Reconciling", "a.example.org/Stalled", "a.example.org/HandlingPaused",
	}, own.TypeNames()); d != "" || err != nil || own.WritesObservedGeneration {
		t.Errorf("%v: %s", err, d)
	}
	if _, err := conditions.NewTypes("a b"); err == nil {
		t.Error("a domain with a blank must be an error")
	}
	held := statusWith(conditionItem("Ready", "True", "Succeeded", "", formerTransition))
	status, _ := own.Apply(objectWithStatus(held), conditions.Report{Generation: 3}, now)
	list, _ := status["conditions"].([]any)
	if status["observedGeneration"] != int64(2) || len(list) != 2 || !gocmp.Equal(list[0], any(conditionItem(
		"Ready", "True", "Succeeded", "", formerTransition))) {
		t.Errorf("an operator must not change the conditions and the generation of another one: %v", status)
	}
}

func TestHidden(t *testing.T) {
	ours := conditionItem("Ready", "True", "Succeeded", "", formerTransition)
	for name, c := range map[string]struct {
		reason     string
		held, want any
	}{
		"none": {"an object without a status stays as it is", nil, nil},
		"ours": {"a status of own conditions only is removed", statusWith(ours), "absent"},
		"beside others": {
			"conditions of others stay",
			map[string]any{"conditions": []any{ours, map[string]any{"type": "Up"}}, "a": "b"},
			map[string]any{"conditions": []any{map[string]any{"type": "Up"}}, "a": "b"},
		},
		"only others": {
			"a status without own conditions stays as it is",
			map[string]any{"conditions": []any{map[string]any{"type": "Up"}}},
			map[string]any{"conditions": []any{map[string]any{"type": "Up"}}},
		},
		"odd": {"a status that is not a mapping stays as it is", "up", "up"},
		"empty": {
			"an empty list stays, because another client wrote it", map[string]any{"conditions": []any{}},
			map[string]any{"conditions": []any{}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			body := objectWithStatus(c.held)
			got := defaultTypes(t).WithoutConditions(body)
			status, present := got["status"]
			if !present {
				status = "absent"
			}
			if d := gocmp.Diff(c.want, status); d != "" {
				t.Errorf("%s: -want, +got:\n%s", c.reason, d)
			}
			if d := gocmp.Diff(objectWithStatus(c.held), body); d != "" {
				t.Errorf("Hidden must not change the object itself:\n%s", d)
			}
		})
	}
}
