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

// Verdict is what a rule says of a request.
type Verdict struct {
	// Allowed is also true of operations that the rule is not for.
	Allowed bool
	// Failed is true if the expression has ended in an error, such as for a field that the object does not have, or was
	// too expensive. The request is denied then; a policy does so by its failurePolicy, Fail.
	Failed bool
	// Message is what whoever has made the request gets to read, without what API servers put before it; Reason and
	// Code are those of the answer. All three are empty if the request is allowed.
	Message string
	Reason  metav1.StatusReason
	Code    int32
}

// codes are the HTTP codes of the reasons that there are.
var codes = map[metav1.StatusReason]int32{
	metav1.StatusReasonInvalid:               http.StatusUnprocessableEntity,
	metav1.StatusReasonForbidden:             http.StatusForbidden,
	metav1.StatusReasonRequestEntityTooLarge: http.StatusRequestEntityTooLarge,
}

// Evaluate tells what becomes of a request to store an object in the place of an old one, by the API server's own code
// and limits, and without a cluster. Without an old object, it is a creation; without a new one, a deletion.
//
// An object of a Go type is taken as it would be sent: its fields without omitempty are there, with zero values, and so
// are its apiVersion and kind only if they are set. What the schema of a CRD would add or refuse is not known here; to
// try what a type cannot say, such as a field that is not there, give an [unstructured.Unstructured].
//
// An error says that the rule is wrong, or the objects; a request that is denied is none. For an expression that ends
// in an error, see [Verdict].
func (r *Rule) Evaluate(object, old client.Object) (Verdict, error) {
	return r.EvaluateContext(context.Background(), object, old)
}

// EvaluateContext is [Rule.Evaluate] for as long as the context lasts; after that, the expression fails.
func (r *Rule) EvaluateContext(ctx context.Context, object, old client.Object) (Verdict, error) {
	if err := r.Err(); err != nil {
		return Verdict{}, err
	}
	request := &admission.VersionedAttributes{}
	operation := admissionregistrationv1.Update
	if absent(object) {
		operation = admissionregistrationv1.Delete
	} else {
		request.VersionedObject = object
	}
	switch {
	case !absent(old):
		request.VersionedOldObject = old
	case operation == admissionregistrationv1.Delete:
		return Verdict{}, r.named(errors.New("there is neither an object nor an old one: give one of them"))
	default:
		operation = admissionregistrationv1.Create
	}
	if !slices.Contains(r.operations, operation) {
		return Verdict{Allowed: true}, nil
	}
	return r.judge(ctx, request)
}

// absent is also true of a nil pointer of some type.
func absent(object client.Object) bool {
	if object == nil {
		return true
	}
	value := reflect.ValueOf(object)
	return value.Kind() == reflect.Pointer && value.IsNil()
}

// judge evaluates the condition, and the message if it is needed.
func (r *Rule) judge(ctx context.Context, request *admission.VersionedAttributes) (Verdict, error) {
	found, left, err := evaluate(ctx, r.condition, request, celconfig.RuntimeCELCostBudget)
	switch {
	case err != nil:
		return Verdict{}, r.named(err)
	case found.Error != nil:
		return Verdict{
			Failed: true, Message: found.Error.Error(),
			Reason: metav1.StatusReasonInvalid, Code: codes[metav1.StatusReasonInvalid],
		}, nil
	case found.EvalResult == types.True:
		return Verdict{Allowed: true}, nil
	}
	return Verdict{Message: r.explain(ctx, request, left), Reason: r.reason, Code: codes[r.reason]}, nil
}

// explain gives the message of a request that is denied: the first that can be had.
func (r *Rule) explain(ctx context.Context, request *admission.VersionedAttributes, budget int64) string {
	if r.text != nil {
		made, _, err := evaluate(ctx, r.text, request, budget)
		if err == nil && made.Error == nil {
			text, _ := made.EvalResult.Value().(string)
			text = strings.TrimSpace(text)
			if text != "" && len(text) <= celconfig.MaxEvaluatedMessageExpressionSizeBytes &&
				!strings.Contains(text, "\n") {
				return text
			}
		}
	}
	return r.explanation()
}

// explanation is the message of all requests that are denied.
func (r *Rule) explanation() string {
	if text := strings.TrimSpace(r.message); text != "" {
		return text
	}
	return "failed expression: " + strings.TrimSpace(r.expression)
}

// evaluate gives the one result of an expression. What it ends in is an error of the result; an error of objects that
// do not encode is one of its own.
func evaluate(
	ctx context.Context, expression plugincel.ConditionEvaluator, request *admission.VersionedAttributes, budget int64,
) (found plugincel.EvaluationResult, left int64, err error) {
	all, left, err := expression.ForInput(ctx, request, nil, plugincel.OptionalVariableBindings{}, nil, budget)
	if err != nil {
		return found, left, fmt.Errorf("evaluating the expression: %w", err)
	}
	return all[0], left, nil
}
