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

// Add has the operator enforce a rule for the objects of a selection: it registers a validating handler by the rule's
// id, for its operations. The rule is checked against the Go type, as by [Rule.Check], and what is wrong with it is
// told by the set-up of the operator, with the file and line of the call.
//
// The expression gets the objects as the API server has sent them, whatever the Go type has of them. The answer has the
// message, the reason and the code of [Verdict], as that by a [Policy] has.
//
// The filters of the selection hold for the handler; a policy does not know them. Objects that do not decode into the
// type are denied as by any handler, before the rule is asked, and by a policy only if the rule says so: what CRDs are
// made of the type refuse them before either.
//
// The options are those of handlers, such as kopf.IgnoreFailures; for operations, there is [Operations].
func Add[T client.Object](of kopf.Selection[T], rule *Rule, options ...kopf.Option) {
	if err := rule.checkType(reflect.TypeFor[T]()); err != nil {
		of.AddError(fmt.Errorf("rules.Add: %w", err))
		return
	}
	operations := make([]admissionv1.Operation, 0, len(rule.operations))
	for _, operation := range rule.operations {
		operations = append(operations, admissionv1.Operation(operation))
	}
	options = append(options[:len(options):len(options)], kopf.Operations(operations...))
	of.Validate(rule.id, func(ctx context.Context, a *kopf.Admission[T]) error {
		object, old := a.Raw()
		return rule.deny(ctx, object, old)
	}, kopf.JoinOptions(options...))
}

// deny is the error by which a handler denies a request; nil allows it.
func (r *Rule) deny(ctx context.Context, object, old client.Object) error {
	verdict, err := r.EvaluateContext(ctx, object, old)
	if err != nil || verdict.Allowed {
		return err
	}
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Message: verdict.Message, Reason: verdict.Reason, Code: verdict.Code,
	}}
}
