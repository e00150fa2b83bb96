package rules_test

import (
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kopf-runtime/kopf-runtime/facade/rules"
)

// TestMistakes is about rules that are wrong whatever objects they are for.
func TestMistakes(t *testing.T) {
	const fine = "object != null"
	cases := map[string]struct {
		reason string
		rule   *rules.Rule
		want   string // empty for none
	}{
		"Nil":   {reason: "a nil rule must not panic", want: "the rule is nil"},
		"Empty": {reason: "a rule that was not made says nothing", rule: &rules.Rule{}, want: "the rule is empty"},
		"NoID": {
			reason: "a rule without a name could not be told apart", rule: rules.New(" ", fine, "m"),
			want: "the id is empty",
		},
		"NoExpression": {
			reason: "an empty expression is no condition", rule: rules.New("r", "\n", "m"),
			want: "the expression is empty",
		},
		"MessageOfLines": {
			reason: "API servers refuse it in a policy", rule: rules.New("r", fine, "a\nb"), want: "several lines",
		},
		"BlankMessage": {reason: "so they do this one", rule: rules.New("r", fine, "  "), want: "message is blank"},
		"LinesWithoutMessage": {
			reason: "and this one", rule: rules.New("r", "object\n!= null", ""), want: "needs a message",
		},
		"Syntax": {
			reason: "the place in the expression is told", rule: rules.New("r", "object.spec.size >", "m"),
			want: `rule "r": the expression: line 1, column 19: Syntax error`,
		},
		"Function": {
			reason: "functions that API servers do not have", rule: rules.New("r", "\nsizes(object)", "m"),
			want: "line 2, column 6: undeclared reference to 'sizes'",
		},
		"Request": {
			reason: "policies know it, but unit tests do not",
			rule:   rules.New("r", "request.operation == 'CREATE'", "m"),
			want:   "a rule knows object and oldObject alone",
		},
		"NoCondition": {
			reason: "a number allows nothing", rule: rules.New("r", "1 + 1", "m"),
			want: "must evaluate to bool but got int",
		},
		"Anything": {
			reason: "API servers do not take what may be no bool", rule: rules.New("r", "object.spec.enabled", "m"),
			want: "compare it, as in object.spec.enabled == true",
		},
		"MessageExpression": {
			reason: "it is CEL as well", rule: rules.New("r", fine, "m", rules.MessageExpression("'a' +")),
			want: "MessageExpression: line 1, column 6",
		},
		"MessageOfWrongType": {
			reason: "a message is a text", rule: rules.New("r", fine, "m", rules.MessageExpression("1")),
			want: "MessageExpression: must evaluate to string but got int",
		},
		"Reason": {
			reason: "API servers take three of them", rule: rules.New("r", fine, "m", rules.Reason("Unauthorized")),
			want: `do not take "Unauthorized"`,
		},
		"NoOperations": {
			reason: "a rule for nothing cannot be meant", rule: rules.New("r", fine, "m", rules.Operations()),
			want: "Operations: there are none",
		},
		"Connect": {
			reason: "there is no object to look at", rule: rules.New("r", fine, "m", rules.Operations("CONNECT")),
			want: `cannot be for "CONNECT"`,
		},
		"Twice": {
			reason: "a slip", rule: rules.New("r", fine, "m", rules.Operations("UPDATE", "UPDATE")),
			want: "UPDATE is there twice",
		},
		"NilOption": {reason: "no option", rule: rules.New("r", fine, "m", nil)},
		"Fine": {
			reason: "all that there is",
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
				if !says(err, tc.want) {
					t.Errorf("%s\n%s: got %v, want %q", tc.reason, place, err, tc.want)
				}
			}
		})
	}
}

// says tells whether an error has the text in it; for an empty one, whether there is no error.
func says(err error, text string) bool {
	if err == nil || text == "" {
		return err == nil && text == ""
	}
	return strings.Contains(err.Error(), text)
}

// databases are what policies in tests are for.
func databases() []admissionregistrationv1.Rule {
	return []admissionregistrationv1.Rule{
		{APIGroups: []string{"example.org"}, APIVersions: []string{"v1"}, Resources: []string{"databases"}},
	}
}
