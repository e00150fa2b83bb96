package conditions_test

import (
	"cmp"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/conditions"
)

func TestCheck(t *testing.T) {
	for name, c := range map[string]struct {
		reason string
		given  conditions.Condition
		want   string
	}{
		"usual":    {"it is", conditions.Condition{}, ""},
		"a domain": {"for one's own", conditions.Condition{Type: "a.example.org/Ready"}, ""},
		"a reason with colons": {
			"the API server takes it", conditions.Condition{Reason: "Pod:Up_1"}, "",
		},
		"a type with a blank": {"it is no sentence", conditions.Condition{Type: "Is up"}, `type "Is up"`},
		"no domain":           {"nothing before the slash", conditions.Condition{Type: "/Up"}, `type "/Up"`},
		"a long type": {
			"there is a limit", conditions.Condition{Type: strings.Repeat("a", 400)}, `type "aaaa`,
		},
		"a bool":   {"as Go has it", conditions.Condition{Status: "true"}, `status "true"`},
		"a text":   {"it is for the message", conditions.Condition{Reason: "no quota"}, `reason "no quota"`},
		"a number": {"a reason begins with a letter", conditions.Condition{Reason: "404"}, `reason "404"`},
		"a novel":  {"it is cut, and no error", conditions.Condition{Message: strings.Repeat("x", 99999)}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			c.given.Type, c.given.Status = cmp.Or(c.given.Type, "Up"), cmp.Or(c.given.Status, conditions.True)
			c.given.Reason = cmp.Or(c.given.Reason, "Answers")
			err := c.given.Check()
			if (err == nil) != (c.want == "") || err != nil && !strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("%s: %v", c.reason, err)
			}
		})
	}
}

func TestCheckNothing(t *testing.T) {
	if err := (conditions.Condition{Status: "True", Reason: "Answers"}).Check(); err == nil {
		t.Error("the type is the key of a condition, and was left out")
	}
	if err := (conditions.Condition{Type: "Up", Status: "True"}).Check(); err == nil {
		t.Error("the API server demands a reason, and it was left out")
	}
}

func TestSet(t *testing.T) {
	body := object(nil)
	down := conditions.Condition{Type: "Up", Status: "False", Reason: "Starts", Message: "wait", Generation: 2}
	if err := conditions.Set(body, down, now); err != nil {
		t.Fatal(err)
	}
	first := body["status"]
	want := map[string]any{"conditions": []any{item("Up", "False", "Starts", "wait", later)}}
	if d := gocmp.Diff(want, body["status"]); d != "" {
		t.Errorf("the first time: -want, +got:\n%s", d)
	}
	down.Reason, down.Message = "Loads", strings.Repeat("x", 99999)
	if err := conditions.Set(body, down, now.AddDate(1, 0, 0)); err != nil {
		t.Fatal(err)
	}
	if d := gocmp.Diff(want, first); d != "" {
		t.Errorf("what was given before has changed:\n%s", d)
	}
	status, _ := body["status"].(map[string]any)
	list, _ := status["conditions"].([]any)
	held, _ := list[0].(map[string]any)
	message, _ := held["message"].(string)
	if held["lastTransitionTime"] != later || held["reason"] != "Loads" || len(message) != 32768 {
		t.Errorf("the time has moved, or the message is too long: %v, %d", held["lastTransitionTime"], len(message))
	}
	for _, odd := range []any{"up", map[string]any{"conditions": map[string]any{}}} {
		if err := conditions.Set(object(odd), down, now); err == nil {
			t.Errorf("a condition was set in %v", odd)
		}
	}
}

func TestNamed(t *testing.T) {
	own, err := conditions.Named("a.example.org")
	if d := gocmp.Diff([]string{
		"a.example.org/Ready", "a.example.org/Reconciling", "a.example.org/Stalled",
	}, own.All()); d != "" || err != nil || own.WholeStatus {
		t.Errorf("%v: %s", err, d)
	}
	if _, err := conditions.Named("a b"); err == nil {
		t.Error("a blank is no domain")
	}
	held := with(item("Ready", "True", "Succeeded", "", before))
	status, _ := own.Apply(object(held), conditions.Report{Generation: 3}, now)
	list, _ := status["conditions"].([]any)
	if status["observedGeneration"] != int64(2) || len(list) != 2 || !gocmp.Equal(list[0], any(item(
		"Ready", "True", "Succeeded", "", before))) {
		t.Errorf("an operator has written what is another one's: %v", status)
	}
}

func TestHidden(t *testing.T) {
	ours := item("Ready", "True", "Succeeded", "", before)
	for name, c := range map[string]struct {
		reason     string
		held, want any
	}{
		"none": {"nothing is there", nil, nil},
		"ours": {"it is as if nothing was", with(ours), "absent"},
		"beside others": {
			"these are seen", map[string]any{"conditions": []any{ours, map[string]any{"type": "Up"}}, "a": "b"},
			map[string]any{"conditions": []any{map[string]any{"type": "Up"}}, "a": "b"},
		},
		"only others": {
			"all is as it was", map[string]any{"conditions": []any{map[string]any{"type": "Up"}}},
			map[string]any{"conditions": []any{map[string]any{"type": "Up"}}},
		},
		"odd": {"it is left alone", "up", "up"},
		"empty": {
			"somebody else has written that", map[string]any{"conditions": []any{}},
			map[string]any{"conditions": []any{}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			body := object(c.held)
			got := usual(t).Hidden(body)
			status, present := got["status"]
			if !present {
				status = "absent"
			}
			if d := gocmp.Diff(c.want, status); d != "" {
				t.Errorf("%s: -want, +got:\n%s", c.reason, d)
			}
			if d := gocmp.Diff(object(c.held), body); d != "" {
				t.Errorf("the object itself has changed:\n%s", d)
			}
		})
	}
}
