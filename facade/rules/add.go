package rules

import (
	"context"
	"fmt"
	"reflect"

	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

// Add enforces a rule for the objects of a selection: it registers a validating handler with the rule's id, for the
// rule's operations. It checks the rule against the Go type, like [Rule.Check]. The set-up of the operator reports the
// errors, with the file and line of the call.
//
// The expression is evaluated with the objects as the API server has sent them, including fields that the Go type does
// not have. A denied request has the message, the reason and the code of [Verdict], as with a [Policy].
//
// The filters of the selection apply to the handler; a policy does not have them. Objects that do not decode into the
// type are denied before the rule is evaluated, as by any handler. A policy only denies them if the rule does; usually,
// the schema of the CRD rejects such objects in both cases.
//
// The options are those of handlers, such as kopf.IgnoreFailures. For operations, use [Operations].
func Add[T client.Object](of kopf.Selection[T], rule *Rule, options ...kopf.Option) {
	if err := rule.checkType(reflect.TypeFor[T]()); err != nil {
		of.AddError(fmt.Errorf("rules.Add: %w", err))
		return
	}
	operations := make([]admissionv1.Operation, 0, len(rule.operations))
	for _, operation := range rule.operations {
		operations = append(operations, admissionv1.Operation(operation))
	}
	// The capacity is limited so that append does not write into the caller's array.
	options = append(options[:len(options):len(options)], kopf.Operations(operations...))
	of.Validate(rule.id, func(ctx context.Context, a *kopf.Admission[T]) error {
		object, old := a.Raw()
		return rule.denialError(ctx, object, old)
	}, kopf.JoinOptions(options...))
}

// denialError returns the error with which a handler denies a request, or nil if the rule allows it.
func (r *Rule) denialError(ctx context.Context, object, old client.Object) error {
	verdict, err := r.EvaluateContext(ctx, object, old)
	if err != nil || verdict.Allowed {
		return err
	}
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Message: verdict.Message, Reason: verdict.Reason, Code: verdict.Code,
	}}
}
