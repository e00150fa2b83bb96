package conditions_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/internal/conditions"
)

func TestCheckTakesTheLongest(t *testing.T) {
	longest := conditions.Condition{Type: strings.Repeat("a", 316), Status: "True", Reason: strings.Repeat("A", 1024)}
	if err := longest.CheckFields(); err != nil {
		t.Errorf("the longest type and reason of the API server must be valid: %v", err)
	}
	for field, tooLong := range map[string]conditions.Condition{
		"type":   {Type: longest.Type + "a", Status: "True", Reason: "Up"},
		"reason": {Type: "Up", Status: "True", Reason: longest.Reason + "A"},
	} {
		if err := tooLong.CheckFields(); err == nil || !strings.HasPrefix(err.Error(), field) {
			t.Errorf("the %s is one character too long and must be an error: got %v", field, err)
		}
	}
}

func TestMessagesAreCut(t *testing.T) {
	full := strings.Repeat("x", 32768)
	for reason, c := range map[string]struct{ message, want string }{
		"A message of the maximum length stays as it is.":       {full, full},
		"A message one byte too long is cut, with an ellipsis.": {full + "y", full[:32765] + "…"},
		"A message is cut between two characters.": {strings.Repeat("ä", 20000),
			strings.Repeat("ä", 16382) + "…"},
		"A message without any valid character is only an ellipsis.": {strings.Repeat("\x80", 40000), "…"},
	} {
		body := objectWithStatus(nil)
		c1 := conditions.Condition{Type: "Up", Status: "False", Reason: "Starts", Message: c.message}
		if err := conditions.SetCondition(body, c1, now); err != nil {
			t.Fatal(err)
		}
		list, _ := body["status"].(map[string]any)["conditions"].([]any)
		if got, _ := list[0].(map[string]any)["message"].(string); got != c.want || len(got) > len(full) {
			t.Errorf("%s\ngot %d bytes, want %d; valid: %v", reason, len(got), len(c.want), utf8.ValidString(got))
		}
	}
}

// TestMessageOfSeveralHandlers shows that several handlers share the message; handlers that were called come first.
func TestMessageOfSeveralHandlers(t *testing.T) {
	report := conditions.Report{Outcomes: []conditions.HandlerProgress{
		{ID: "new"}, {ID: "first", Attempts: 1, Message: strings.Repeat("x", 4000)}, {ID: "other", Attempts: 2},
	}}
	status, _ := defaultTypes(t).Apply(map[string]any{}, report, now)
	list, _ := status["conditions"].([]any)
	ready, _ := list[0].(map[string]any)
	message, _ := ready["message"].(string)
	var at []int
	for _, part := range []string{`handler "first"`, `handler "other", attempt 2`, `handler "new" is not called`} {
		at = append(at, strings.Index(message, part))
	}
	if at[0] != 0 || at[1] < at[0] || at[2] < at[1] || ready["reason"] != conditions.Retrying {
		t.Errorf("want all handlers with the reason Retrying, got %v at %v: %s", ready["reason"], at, message)
	}
}

func TestTold(t *testing.T) {
	for name, c := range map[string]struct {
		reason string
		status any
		want   conditions.ReportedState
		beside conditions.ReportedState // for an operator beside another one
	}{
		"none": {"an object without a status has no report", nil, conditions.ReportedState{},
			conditions.ReportedState{}},
		"odd": {"a status that is not a mapping has no report", "up", conditions.ReportedState{},
			conditions.ReportedState{}},
		"ready": {
			"a Ready condition counts, whatever its status",
			statusWith(conditionItem("Ready", "False", "Failed", "", formerTransition)),
			conditions.ReportedState{HasReady: true, Generation: 2}, conditions.ReportedState{},
		},
		"under way": {
			"a true Reconciling condition is reported",
			statusWith(conditionItem("Reconciling", "True", "Retrying", "", formerTransition)),
			conditions.ReportedState{IsReconciling: true, Generation: 2}, conditions.ReportedState{},
		},
		"not under way": {
			"a false Reconciling condition does not count",
			statusWith(conditionItem("Reconciling", "False", "Done", "", formerTransition)),
			conditions.ReportedState{Generation: 2}, conditions.ReportedState{},
		},
		"of its own": {
			"the observed generation of the condition counts more than that of the status",
			map[string]any{
				"conditions":         []any{conditionItem("Ready", "True", "Succeeded", "", formerTransition)},
				"observedGeneration": int64(3),
			}, conditions.ReportedState{HasReady: true, Generation: 2}, conditions.ReportedState{},
		},
		"another's": {
			"the generation of the status belongs to the operator with conditions without a domain",
			statusWith(conditionItem("a.example.org/Ready", "True", "Succeeded", "", formerTransition)),
			conditions.ReportedState{Generation: 2},
			conditions.ReportedState{HasReady: true, Generation: 2},
		},
	} {
		t.Run(name, func(t *testing.T) {
			beside, err := conditions.NewTypes("a.example.org")
			if err != nil {
				t.Fatal(err)
			}
			got := []conditions.ReportedState{defaultTypes(t).ReadReported(objectWithStatus(c.status)),
				beside.ReadReported(objectWithStatus(c.status))}
			if d := cmp.Diff([]conditions.ReportedState{c.want, c.beside}, got); d != "" {
				t.Errorf("%s: -want, +got:\n%s", c.reason, d)
			}
		})
	}
}

// TestHiddenBesideAnother shows that an operator with a domain hides its own conditions, and keeps the fields of the
// status as a whole.
func TestHiddenBesideAnother(t *testing.T) {
	beside, err := conditions.NewTypes("a.example.org")
	if err != nil {
		t.Fatal(err)
	}
	others := conditionItem("Ready", "True", "Succeeded", "", formerTransition)
	own := conditionItem("a.example.org/Ready", "True", "Succeeded", "", formerTransition)
	for reason, c := range map[string]struct {
		types      conditions.Types
		held, want any
	}{
		"Conditions of others stay, and so does the observed generation.": {beside, statusWith(others, own),
			statusWith(others)},
		"A status without own conditions stays as it is.": {beside, statusWith(others),
			statusWith(others)},
		"The operator without a domain hides the generation, even without own conditions.": {
			defaultTypes(t), statusWith(own), map[string]any{"conditions": []any{own}},
		},
	} {
		if d := cmp.Diff(c.want, c.types.WithoutConditions(objectWithStatus(c.held))["status"]); d != "" {
			t.Errorf("%s\n-want, +got:\n%s", reason, d)
		}
	}
}

// TestBlockedIsPast shows that a Blocked condition does not count as a failure of handlers: it ends when the change is
// reverted.
func TestBlockedIsPast(t *testing.T) {
	held := statusWith(
		conditionItem("Ready", "False", "Blocked", "no number", formerTransition),
		conditionItem("Stalled", "True", "Blocked", "no", formerTransition),
	)
	status, _ := defaultTypes(t).Apply(objectWithStatus(held), conditions.Report{Generation: 2}, now)
	want := statusWith(conditionItem("Ready", "True", "Succeeded", "no handler had to be called", nowText))
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
	why, _ := conditions.SchemaMisfit(map[string]any{"properties": map[string]any{"status": status}}, resolve)
	if d := cmp.Diff([]string{"#/lists"}, asked); d != "" || !strings.Contains(why, "not a list") {
		t.Errorf("got %q; references, -want, +got:\n%s", why, d)
	}
}
