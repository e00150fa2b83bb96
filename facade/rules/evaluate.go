package rules

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"github.com/google/cel-go/common/types"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Verdict is the result of a rule for one request.
type Verdict struct {
	// Allowed is also true for operations that the rule does not cover.
	Allowed bool
	// Failed reports that the expression has ended in an error, such as a missing field, or has exceeded the cost
	// limit. The request is denied then. A policy does the same because its failurePolicy is Fail.
	Failed bool
	// Message is the text for the client, without the prefix that API servers add. Reason and Code are those of the
	// response. All three are empty if the request is allowed.
	Message string
	Reason  metav1.StatusReason
	Code    int32
}

// statusCodes has the HTTP codes of the reasons that policies support.
var statusCodes = map[metav1.StatusReason]int32{
	metav1.StatusReasonInvalid:               http.StatusUnprocessableEntity,
	metav1.StatusReasonForbidden:             http.StatusForbidden,
	metav1.StatusReasonRequestEntityTooLarge: http.StatusRequestEntityTooLarge,
}

// Evaluate returns the verdict on a request that replaces an old object with a new one. It uses the API server's own
// code and limits, and needs no cluster. Without an old object, the request is a creation; without a new one, a
// deletion.
//
// An object of a Go type is evaluated as it would be sent: fields without omitempty are present with zero values, and
// its apiVersion and kind only if they are set. Defaults and validation of a CRD's schema are not applied. To test a
// state that the type cannot express, such as a missing field, pass an [unstructured.Unstructured].
//
// An error means that the rule or the objects are invalid. A denied request is not an error. For an expression that
// ends in an error, see [Verdict].
func (r *Rule) Evaluate(object, old client.Object) (Verdict, error) {
	return r.EvaluateContext(context.Background(), object, old)
}

// EvaluateContext is [Rule.Evaluate] with a context. After the end of the context, the expression fails.
func (r *Rule) EvaluateContext(ctx context.Context, object, old client.Object) (Verdict, error) {
	if err := r.Err(); err != nil {
		return Verdict{}, err
	}
	// Only the objects are set: expressions have no other variables.
	request := &admission.VersionedAttributes{}
	operation := admissionregistrationv1.Update
	if isAbsent(object) {
		operation = admissionregistrationv1.Delete
	} else {
		request.VersionedObject = object
	}
	switch {
	case !isAbsent(old):
		request.VersionedOldObject = old
	case operation == admissionregistrationv1.Delete:
		return Verdict{}, r.withRuleID(errors.New("there is neither an object nor an old one: give one of them"))
	default:
		operation = admissionregistrationv1.Create
	}
	if !slices.Contains(r.operations, operation) {
		return Verdict{Allowed: true}, nil
	}
	return r.evaluateRequest(ctx, request)
}

// isAbsent reports whether there is no object: nil, or a nil pointer of some type.
func isAbsent(object client.Object) bool {
	if object == nil {
		return true
	}
	value := reflect.ValueOf(object)
	return value.Kind() == reflect.Pointer && value.IsNil()
}

// evaluateRequest evaluates the condition, and the message if the request is denied.
func (r *Rule) evaluateRequest(ctx context.Context, request *admission.VersionedAttributes) (Verdict, error) {
	found, left, err := evaluateExpression(ctx, r.condition, request, celconfig.RuntimeCELCostBudget)
	switch {
	case err != nil:
		return Verdict{}, r.withRuleID(err)
	case found.Error != nil:
		return Verdict{
			Failed: true, Message: found.Error.Error(),
			Reason: metav1.StatusReasonInvalid, Code: statusCodes[metav1.StatusReasonInvalid],
		}, nil
	case found.EvalResult == types.True:
		return Verdict{Allowed: true}, nil
	}
	return Verdict{Message: r.denialMessage(ctx, request, left), Reason: r.reason, Code: statusCodes[r.reason]}, nil
}

// denialMessage returns the message for a denied request: the result of the message expression if it is valid, else the
// fixed message. The conditions are those of the API server. The budget is what remains after the condition.
func (r *Rule) denialMessage(ctx context.Context, request *admission.VersionedAttributes, budget int64) string {
	if r.messageEvaluator != nil {
		made, _, err := evaluateExpression(ctx, r.messageEvaluator, request, budget)
		if err == nil && made.Error == nil {
			text, _ := made.EvalResult.Value().(string)
			text = strings.TrimSpace(text)
			if text != "" && len(text) <= celconfig.MaxEvaluatedMessageExpressionSizeBytes &&
				!strings.Contains(text, "\n") {
				return text
			}
		}
	}
	return r.fixedMessage()
}

// fixedMessage returns the fixed message, or else the expression, as the API server formats it.
func (r *Rule) fixedMessage() string {
	if text := strings.TrimSpace(r.message); text != "" {
		return text
	}
	return "failed expression: " + strings.TrimSpace(r.expression)
}

// evaluateExpression returns the single result of an expression, and the remaining cost budget. An error of the
// expression is part of the result. The error result is about objects that cannot be encoded.
func evaluateExpression(
	ctx context.Context, expression plugincel.ConditionEvaluator, request *admission.VersionedAttributes, budget int64,
) (found plugincel.EvaluationResult, left int64, err error) {
	all, left, err := expression.ForInput(ctx, request, nil, plugincel.OptionalVariableBindings{}, nil, budget)
	if err != nil {
		return found, left, fmt.Errorf("evaluating the expression: %w", err)
	}
	return all[0], left, nil
}
