package rules

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
)

// Rule is a condition that objects must meet; otherwise, requests with them are denied. Create it with [New]. A rule is
// immutable and safe for concurrent use.
type Rule struct {
	id, expression, message string
	messageExpression       string
	reason                  metav1.StatusReason
	operations              []admissionregistrationv1.OperationType

	condition, messageEvaluator plugincel.ConditionEvaluator // text is nil without a messageExpression
	err                         error                        // returned by everything that uses the rule
}

// Option configures a rule in [New].
type Option func(*Rule)

// MessageExpression sets a second expression that returns the message as a string:
//
//	rules.MessageExpression("'the size never shrinks below ' + string(oldObject.spec.size)")
//
// It has the same variables as the rule. If it ends in an error, or returns an empty text, several lines or more than 5
// KiB, the message is that of [New].
func MessageExpression(expression string) Option {
	return func(r *Rule) { r.messageExpression = expression }
}

// Reason sets the reason of denials, which determines the HTTP code of the response: metav1.StatusReasonInvalid, the
// default, is 422; Forbidden is 403; RequestEntityTooLarge is 413. API servers do not accept other reasons in a policy.
func Reason(reason metav1.StatusReason) Option {
	return func(r *Rule) { r.reason = reason }
}

// Operations sets the operations that the rule covers: CREATE, UPDATE and DELETE. Default: CREATE and UPDATE. All other
// operations are allowed.
func Operations(operations ...admissionregistrationv1.OperationType) Option {
	return func(r *Rule) { r.operations = slices.Clone(operations) }
}

// New returns a rule. The expression is CEL as in a ValidatingAdmissionPolicy, and true for allowed requests. If it is
// false, the client receives the message. The id identifies the rule.
//
// New never fails. An invalid rule is reported by everything that uses it, and by [Rule.Err].
func New(id, expression, message string, options ...Option) *Rule {
	r := &Rule{
		id: id, expression: expression, message: message, reason: metav1.StatusReasonInvalid,
		operations: []admissionregistrationv1.OperationType{
			admissionregistrationv1.Create, admissionregistrationv1.Update,
		},
	}
	for _, option := range options {
		if option != nil {
			option(r)
		}
	}
	// Invalid texts are reported without the compiler's errors, which would only repeat them in other words.
	if err := errors.Join(r.checkTexts(), r.checkOptions()); err != nil {
		r.err = r.withRuleID(err)
		return r
	}
	if err := r.compileExpressions(); err != nil {
		r.err = r.withRuleID(err)
	}
	return r
}

// ID returns the id of the rule, which is also the id of its handler in an operator.
func (r *Rule) ID() string { return r.id }

// Err returns the errors of the rule itself, independent of the objects, or nil. For the errors with a kind of objects,
// see [Rule.Check].
func (r *Rule) Err() error {
	if r == nil {
		return errors.New("the rule is nil: make it with rules.New")
	}
	if r.condition == nil && r.err == nil {
		return errors.New("the rule is empty: make it with rules.New")
	}
	return r.err
}

// withRuleID adds the id of the rule to an error.
func (r *Rule) withRuleID(err error) error { return fmt.Errorf("rule %q: %w", r.id, err) }

// checkTexts returns the errors in the id, the expression and the message. They are reported in Go, because API servers
// would only reject them when the policy is created.
func (r *Rule) checkTexts() error {
	var found []error
	if strings.TrimSpace(r.id) == "" {
		found = append(found, errors.New("the id is empty: give it a name, such as size-grows"))
	}
	if strings.TrimSpace(r.expression) == "" {
		found = append(found,
			errors.New("the expression is empty: write a condition, such as object.spec.size > 0"))
	}
	message := strings.TrimSpace(r.message)
	switch {
	case strings.ContainsAny(message, "\r\n"):
		found = append(found, errors.New("the message has several lines: it must have one"))
	case message == "" && r.message != "":
		found = append(found, errors.New("the message is blank: describe the rule"))
	case message == "" && strings.ContainsAny(strings.TrimSpace(r.expression), "\r\n"):
		found = append(found, errors.New("an expression of several lines needs a message: describe the rule"))
	}
	return errors.Join(found...)
}

// checkOptions returns the errors in the operations and the reason.
func (r *Rule) checkOptions() error {
	var found []error
	if len(r.operations) == 0 {
		found = append(found, errors.New("Operations: there are none: leave it out for CREATE and UPDATE"))
	}
	for i, operation := range r.operations {
		switch operation {
		case admissionregistrationv1.Create, admissionregistrationv1.Update, admissionregistrationv1.Delete:
			if slices.Contains(r.operations[:i], operation) {
				found = append(found, fmt.Errorf("Operations: %s is there twice", operation))
			}
		default:
			found = append(found, fmt.Errorf("Operations: a rule cannot be for %q: only CREATE, UPDATE and DELETE",
				operation))
		}
	}
	if _, known := statusCodes[r.reason]; !known {
		found = append(found, fmt.Errorf("Reason: API servers do not take %q from a rule: only Invalid, Forbidden "+
			"and RequestEntityTooLarge", r.reason))
	}
	return errors.Join(found...)
}
