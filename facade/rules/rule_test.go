package rules_test

import (
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kopf-runtime/kopf-runtime/facade/rules"
)

// TestMistakes shows the errors of rules that are invalid for objects of any type.
func TestMistakes(t *testing.T) {
	const fine = "object != null"
	cases := map[string]struct {
		reason string
		rule   *rules.Rule
		want   string // empty for none
	}{
		"Nil":   {reason: "a nil rule is an error, not a panic", want: "the rule is nil"},
		"Empty": {reason: "a zero rule is an error", rule: &rules.Rule{}, want: "the rule is empty"},
		"NoID": {
			reason: "a blank id is an error", rule: rules.New(" ", fine, "m"),
			want: "the id is empty",
		},
		"NoExpression": {
			reason: "a blank expression is an error", rule: rules.New("r", "\n", "m"),
			want: "the expression is empty",
		},
		"MessageOfLines": {
			reason: "a message of several lines is an error", rule: rules.New("r", fine, "a\nb"), want: "several lines",
		},
		"BlankMessage": {reason: "a blank message is an error",
			rule: rules.New("r", fine, "  "), want: "message is blank"},
		"LinesWithoutMessage": {
			reason: "an expression of several lines without a message is an error",
			rule:   rules.New("r", "object\n!= null", ""), want: "needs a message",
		},
		"Syntax": {
			reason: "a syntax error is reported with its place", rule: rules.New("r", "object.spec.size >", "m"),
			want: `rule "r": the expression: line 1, column 19: Syntax error`,
		},
		"Function": {
			reason: "a function that API servers do not have is an error", rule: rules.New("r", "\nsizes(object)", "m"),
			want: "line 2, column 6: undeclared reference to 'sizes'",
		},
		"Request": {
			reason: "the variable request is not available",
			rule:   rules.New("r", "request.operation == 'CREATE'", "m"),
			want:   "a rule knows object and oldObject alone",
		},
		"NoCondition": {
			reason: "an expression that is not boolean is an error", rule: rules.New("r", "1 + 1", "m"),
			want: "must evaluate to bool but got int",
		},
		"Anything": {
			reason: "an expression of an unknown type is an error", rule: rules.New("r", "object.spec.enabled", "m"),
			want: "compare it, as in object.spec.enabled == true",
		},
		"MessageExpression": {
			reason: "a syntax error in MessageExpression is an error",
			rule:   rules.New("r", fine, "m", rules.MessageExpression("'a' +")),
			want:   "MessageExpression: line 1, column 6",
		},
		"MessageOfWrongType": {
			reason: "a MessageExpression that is not a text is an error",
			rule:   rules.New("r", fine, "m", rules.MessageExpression("1")),
			want:   "MessageExpression: must evaluate to string but got int",
		},
		"Reason": {
			reason: "a reason that API servers do not accept is an error",
			rule:   rules.New("r", fine, "m", rules.Reason("Unauthorized")),
			want:   `do not take "Unauthorized"`,
		},
		"NoOperations": {
			reason: "an empty list of operations is an error", rule: rules.New("r", fine, "m", rules.Operations()),
			want: "Operations: there are none",
		},
		"Connect": {
			reason: "a rule for CONNECT is an error", rule: rules.New("r", fine, "m", rules.Operations("CONNECT")),
			want: `cannot be for "CONNECT"`,
		},
		"Twice": {
			reason: "a repeated operation is an error",
			rule:   rules.New("r", fine, "m", rules.Operations("UPDATE", "UPDATE")),
			want:   "UPDATE is there twice",
		},
		"NilOption": {reason: "a nil option is ignored", rule: rules.New("r", fine, "m", nil)},
		"Fine": {
			reason: "a rule with all options is valid",
			rule: rules.New("r", "object == null ||\noldObject == null // fine", "m",
				rules.Operations("CREATE", "DELETE"), rules.Reason(metav1.StatusReasonForbidden),
				rules.MessageExpression("string(object.spec.size)")),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			places := map[string]error{"Err": tc.rule.Err(), "Check": tc.rule.Check(&unstructured.Unstructured{})}
			_, places["Evaluate"] = tc.rule.Evaluate(&unstructured.Unstructured{}, nil)
			_, _, places["Policy"] = rules.Policy("p", databases(), tc.rule)
			for place, err := range places {
				if !containsError(err, tc.want) {
					t.Errorf("%s\n%s: got %v, want %q", tc.reason, place, err, tc.want)
				}
			}
		})
	}
}

// containsError reports whether an error contains the text, or whether there is no error if the text is empty.
func containsError(err error, text string) bool {
	if err == nil || text == "" {
		return err == nil && text == ""
	}
	return strings.Contains(err.Error(), text)
}

// databases returns the resources of the policies in the tests.
func databases() []admissionregistrationv1.Rule {
	return []admissionregistrationv1.Rule{
		{APIGroups: []string{"example.org"}, APIVersions: []string{"v1"}, Resources: []string{"databases"}},
	}
}
