package rules_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-runtime/kopf-runtime/facade/rules"
)

const growthExpression = "oldObject == null || object.spec.size >= oldObject.spec.size"

func denied(message string) rules.Verdict {
	return rules.Verdict{Message: message, Reason: metav1.StatusReasonInvalid, Code: 422}
}

func failed(message string) rules.Verdict {
	return rules.Verdict{Failed: true, Message: message, Reason: metav1.StatusReasonInvalid, Code: 422}
}

func TestEvaluate(t *testing.T) {
	allowed := rules.Verdict{Allowed: true}
	const lines = "'first\\nsecond'"
	cases := map[string]struct {
		reason, expression string
		message            string
		options            []rules.Option
		object, old        client.Object
		want               rules.Verdict
	}{
		"Creation": {reason: "a creation without an old object is allowed",
			expression: growthExpression, object: sized(1), want: allowed},
		"NilOld": {
			reason: "a typed nil pointer is treated as an absent old object", expression: growthExpression,
			object: sized(1),
			old:    (*Database)(nil),
			want:   allowed,
		},
		"Larger": {reason: "an update that fulfils the rule is allowed",
			expression: growthExpression, object: sized(2), old: sized(1), want: allowed},
		"Smaller": {reason: "an update that breaks the rule is denied",
			expression: growthExpression, object: sized(1), old: sized(2), want: denied("message")},
		"MissingKey": {
			reason: "an error in the evaluation is a denial, as with failurePolicy Fail", expression: growthExpression,
			object: raw(t, `{}`), old: sized(2),
			want: failed("expression '" + growthExpression + "' resulted in error: no such key: size"),
		},
		"WrongType": {
			reason: "a value of another type than in Go is an error in the evaluation", expression: growthExpression,
			object: raw(t, `{"size":"large"}`), old: sized(2),
			want: failed("expression '" + growthExpression + "' resulted in error: no such overload"),
		},
		"Zero": {
			reason: "a zero field without omitempty exists", expression: "has(object.spec.size)", object: sized(0),
			want: allowed,
		},
		"OmittedZero": {
			reason:     "a zero field with omitempty does not exist",
			expression: "has(object.spec.owner)", object: sized(0),
			want: denied("message"),
		},
		"Deletion": {
			reason: "a rule does not apply to deletions by default", expression: "oldObject == null", old: sized(1),
			want: allowed,
		},
		"DeletionDenied": {
			reason:     "a rule for deletions applies to a deletion",
			expression: "oldObject.spec.size == 0", old: sized(1), want: denied("message"),
			options: []rules.Option{rules.Operations("DELETE")},
		},
		"NotForCreations": {
			reason:     "a rule for deletions does not apply to a creation",
			expression: "oldObject.spec.size == 0", object: sized(1),
			want:    allowed,
			options: []rules.Option{rules.Operations("DELETE")},
		},
		"Reason": {
			reason: "the reason determines the code", expression: "object.spec.size > 1", object: sized(1),
			options: []rules.Option{rules.Reason(metav1.StatusReasonForbidden)},
			want:    rules.Verdict{Message: "message", Reason: metav1.StatusReasonForbidden, Code: 403},
		},
		"NoMessage": {
			reason:     "without a message, the expression is the message",
			expression: " object.spec.size > 1", message: "-", object: sized(1),
			want: denied("failed expression: object.spec.size > 1"),
		},
		"MessageExpression": {
			reason:     "MessageExpression takes precedence over the message",
			expression: "object.spec.size > 1", object: sized(1),
			options: []rules.Option{rules.MessageExpression("' not ' + string(object.spec.size)")},
			want:    denied("not 1"),
		},
		"MessageFails": {
			reason:     "the message is used if MessageExpression fails",
			expression: "object.spec.size > 1", object: sized(1),
			options: []rules.Option{rules.MessageExpression("'was ' + string(oldObject.spec.size)")},
			want:    denied("message"),
		},
		"MessageOfLines": {
			reason:     "the message is used if MessageExpression returns several lines",
			expression: "object.spec.size > 1", object: sized(1),
			options: []rules.Option{rules.MessageExpression(lines)}, want: denied("message"),
		},
		"MessageEmpty": {
			reason:     "the message is used if MessageExpression returns blanks",
			expression: "object.spec.size > 1", object: sized(1),
			options: []rules.Option{rules.MessageExpression("' '")}, want: denied("message"),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			message := tc.message
			switch message {
			case "":
				message = "message"
			case "-":
				message = ""
			}
			got, err := rules.New("r", tc.expression, message, tc.options...).Evaluate(tc.object, tc.old)
			if err != nil {
				t.Fatalf("%s\nEvaluate(...): %v", tc.reason, err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\nEvaluate(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestEvaluateNothing(t *testing.T) {
	_, err := rules.New("r", "object != null", "m").Evaluate(nil, nil)
	if err == nil || !strings.Contains(err.Error(), "neither an object nor an old one") {
		t.Errorf("Evaluate(nil, nil): got %v, want an error about missing objects", err)
	}
}

// TestCost shows that the cost limit applies, with an expression whose cost grows with the third power of a list.
func TestCost(t *testing.T) {
	const every = "object.spec.l.all(a, object.spec.l.all(b, object.spec.l.all(c, a + b + c >= 0)))"
	rule := rules.New("r", every, "m")
	of := func(n int) client.Object {
		return raw(t, fmt.Sprintf(`{"l":[%s0]}`, strings.Repeat("0,", n-1)))
	}
	if got, err := rule.Evaluate(of(10), nil); err != nil || !got.Allowed {
		t.Errorf("10 elements: %+v, %v, want them to be allowed", got, err)
	}
	want := failed("expression '" + every + "' resulted in error: operation cancelled: actual cost limit exceeded")
	got, err := rule.Evaluate(of(100), nil)
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("100 elements: %v, -want, +got:\n%s", err, diff)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got, err := rule.EvaluateContext(ctx, of(50), nil); err != nil || !got.Failed {
		t.Errorf("50 elements after the end of the context: %+v, %v, want a failure", got, err)
	}
}
