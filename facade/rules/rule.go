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

// Rule is a condition that objects fulfil, or requests with them are denied. Make it with [New]; it never changes, and
// may be used by several goroutines.
type Rule struct {
	id, expression, message string
	messageExpression       string
	reason                  metav1.StatusReason
	operations              []admissionregistrationv1.OperationType

	condition, text plugincel.ConditionEvaluator // text is nil without a messageExpression
	err             error
}

// Option is an option of [New].
type Option func(*Rule)

// MessageExpression makes the message by another expression, which gives a string:
//
//	rules.MessageExpression("'the size never shrinks below ' + string(oldObject.spec.size)")
//
// It knows what the rule knows. Where it ends in an error, or gives an empty text, several lines or more than 5 KiB,
// the message is that of [New].
func MessageExpression(expression string) Option {
	return func(r *Rule) { r.messageExpression = expression }
}

// Reason is why requests are denied, and makes the HTTP code of the answer: metav1.StatusReasonInvalid, which is the
// default, 422; Forbidden, 403; RequestEntityTooLarge, 413. API servers take no others from a policy.
func Reason(reason metav1.StatusReason) Option {
	return func(r *Rule) { r.reason = reason }
}

// Operations are those that the rule is for, of CREATE, UPDATE and DELETE: without it, the first two. All others are
// allowed.
func Operations(operations ...admissionregistrationv1.OperationType) Option {
	return func(r *Rule) { r.operations = slices.Clone(operations) }
}

// New makes a rule. The expression is CEL as in a ValidatingAdmissionPolicy, and true for what is allowed; if it is
// false, whoever has made the request gets the message. The id tells rules apart.
//
// New never fails: what is wrong with a rule is an error of everything that it is given to.
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
	if err := errors.Join(r.checkTexts(), r.checkOptions()); err != nil {
		r.err = r.named(err)
		return r
	}
	if err := r.compile(); err != nil {
		r.err = r.named(err)
	}
	return r
}

// ID tells the rule apart. As a handler of an operator, it has this id, too.
func (r *Rule) ID() string { return r.id }

// Err is what is wrong with the rule, whatever objects it is for; nil if nothing is. For a kind of objects, see
// [Rule.Check].
func (r *Rule) Err() error {
	if r == nil {
		return errors.New("the rule is nil: make it with rules.New")
	}
	if r.condition == nil && r.err == nil {
		return errors.New("the rule is empty: make it with rules.New")
	}
	return r.err
}

// named says which rule an error is about.
func (r *Rule) named(err error) error { return fmt.Errorf("rule %q: %w", r.id, err) }

// checkTexts tells what API servers would not take.
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

// checkOptions tells which options cannot be meant.
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
	if _, known := codes[r.reason]; !known {
		found = append(found, fmt.Errorf("Reason: API servers do not take %q from a rule: only Invalid, Forbidden "+
			"and RequestEntityTooLarge", r.reason))
	}
	return errors.Join(found...)
}
