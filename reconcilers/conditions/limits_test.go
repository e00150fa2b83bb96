package conditions_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/conditions"
)

func TestCheckTakesTheLongest(t *testing.T) {
	longest := conditions.Condition{Type: strings.Repeat("a", 316), Status: "True", Reason: strings.Repeat("A", 1024)}
	if err := longest.Check(); err != nil {
		t.Errorf("the API server takes them: %v", err)
	}
	for field, tooLong := range map[string]conditions.Condition{
		"type":   {Type: longest.Type + "a", Status: "True", Reason: "Up"},
		"reason": {Type: "Up", Status: "True", Reason: longest.Reason + "A"},
	} {
		if err := tooLong.Check(); err == nil || !strings.HasPrefix(err.Error(), field) {
			t.Errorf("the API server does not take this %s: got %v", field, err)
		}
	}
}

func TestMessagesAreCut(t *testing.T) {
	full := strings.Repeat("x", 32768)
	for reason, c := range map[string]struct{ message, want string }{
		"It is as long as the API server takes.": {full, full},
		"It is one byte longer.":                 {full + "y", full[:32765] + "…"},
		"Half a character is none.":              {strings.Repeat("ä", 20000), strings.Repeat("ä", 16382) + "…"},
		"There is no character to cut at.":       {strings.Repeat("\x80", 40000), "…"},
	} {
		body := object(nil)
		c1 := conditions.Condition{Type: "Up", Status: "False", Reason: "Starts", Message: c.message}
		if err := conditions.Set(body, c1, now); err != nil {
			t.Fatal(err)
		}
		list, _ := body["status"].(map[string]any)["conditions"].([]any)
		if got, _ := list[0].(map[string]any)["message"].(string); got != c.want || len(got) > len(full) {
			t.Errorf("%s\ngot %d bytes, want %d; valid: %v", reason, len(got), len(c.want), utf8.ValidString(got))
		}
	}
}

// Of several handlers each has its share of the message, and those that have been called go first.
func TestEveryHandlerIsTold(t *testing.T) {
	report := conditions.Report{Outcomes: []conditions.Outcome{
		{ID: "new"}, {ID: "first", Attempts: 1, Message: strings.Repeat("x", 4000)}, {ID: "other", Attempts: 2},
	}}
	status, _ := usual(t).Apply(map[string]any{}, report, now)
	list, _ := status["conditions"].([]any)
	ready, _ := list[0].(map[string]any)
	message, _ := ready["message"].(string)
	var at []int
	for _, part := range []string{`handler "first"`, `handler "other", attempt 2`, `handler "new" is not called`} {
		at = append(at, strings.Index(message, part))
	}
	if at[0] != 0 || at[1] < at[0] || at[2] < at[1] || ready["reason"] != conditions.Retrying {
		t.Errorf("want all of them with the reason Retrying, got %v at %v: %s", ready["reason"], at, message)
	}
}

func TestTold(t *testing.T) {
	for name, c := range map[string]struct {
		reason string
		status any
		want   conditions.Told
		beside conditions.Told // for an operator beside another one
	}{
		"none": {"nothing is said", nil, conditions.Told{}, conditions.Told{}},
		"odd":  {"it cannot have any", "up", conditions.Told{}, conditions.Told{}},
		"ready": {
			"whatever its status", with(item("Ready", "False", "Failed", "", before)),
			conditions.Told{Ready: true, Generation: 2}, conditions.Told{},
		},
		"under way": {
			"it says so", with(item("Reconciling", "True", "Retrying", "", before)),
			conditions.Told{Reconciling: true, Generation: 2}, conditions.Told{},
		},
		"not under way": {
			"some write that, too", with(item("Reconciling", "False", "Done", "", before)),
			conditions.Told{Generation: 2}, conditions.Told{},
		},
		"of its own": {
			"the condition's own generation counts",
			map[string]any{
				"conditions":         []any{item("Ready", "True", "Succeeded", "", before)},
				"observedGeneration": int64(3),
			}, conditions.Told{Ready: true, Generation: 2}, conditions.Told{},
		},
		"another's": {
			"the status as a whole is about what its owner has seen",
			with(item("a.example.org/Ready", "True", "Succeeded", "", before)), conditions.Told{Generation: 2},
			conditions.Told{Ready: true, Generation: 2},
		},
	} {
		t.Run(name, func(t *testing.T) {
			beside, err := conditions.Named("a.example.org")
			if err != nil {
				t.Fatal(err)
			}
			got := []conditions.Told{usual(t).Told(object(c.status)), beside.Told(object(c.status))}
			if d := cmp.Diff([]conditions.Told{c.want, c.beside}, got); d != "" {
				t.Errorf("%s: -want, +got:\n%s", c.reason, d)
			}
		})
	}
}

// An operator beside another one hides its own conditions, and nothing that is said of the status as a whole.
func TestHiddenBesideAnother(t *testing.T) {
	beside, err := conditions.Named("a.example.org")
	if err != nil {
		t.Fatal(err)
	}
	others := item("Ready", "True", "Succeeded", "", before)
	own := item("a.example.org/Ready", "True", "Succeeded", "", before)
	for reason, c := range map[string]struct {
		types      conditions.Types
		held, want any
	}{
		"What is not its own stays, the generation as well.": {beside, with(others, own), with(others)},
		"There is nothing of its own.":                       {beside, with(others), with(others)},
		"The generation is its own, without any condition.": {
			usual(t), with(own), map[string]any{"conditions": []any{own}},
		},
	} {
		if d := cmp.Diff(c.want, c.types.Hidden(object(c.held))["status"]); d != "" {
			t.Errorf("%s\n-want, +got:\n%s", reason, d)
		}
	}
}

// What could not be handled at all is no failure of handlers: once it is taken back, it is past.
func TestBlockedIsPast(t *testing.T) {
	held := with(
		item("Ready", "False", "Blocked", "no number", before), item("Stalled", "True", "Blocked", "no", before),
	)
	status, _ := usual(t).Apply(object(held), conditions.Report{Generation: 2}, now)
	want := with(item("Ready", "True", "Succeeded", "no handler had to be called", later))
	if d := cmp.Diff(want, status); d != "" {
		t.Errorf("-want, +got:\n%s", d)
	}
}

func TestMisfitFollowsReferences(t *testing.T) {
	asked := []string{}
	resolve := func(reference string) map[string]any {
		asked = append(asked, reference)
		return map[string]any{"type": "object"}
	}
	list := map[string]any{"$ref": "#/lists"}
	status := map[string]any{"properties": map[string]any{"conditions": list}}
	why, _ := conditions.Misfit(map[string]any{"properties": map[string]any{"status": status}}, resolve)
	if d := cmp.Diff([]string{"#/lists"}, asked); d != "" || !strings.Contains(why, "not a list") {
		t.Errorf("it says %q; what was looked up, -want, +got:\n%s", why, d)
	}
}
