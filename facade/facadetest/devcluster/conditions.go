package devcluster

import (
	"context"
	"fmt"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/cel/environment"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/internal/reviewing"
)

// allowAll authorizes everything. CEL expressions can check the permissions of a user, but RBAC is off.
var allowAll = authorizer.AuthorizerFunc(func(context.Context, authorizer.Attributes) (
	authorizer.Decision, string, error,
) {
	return authorizer.DecisionAllow, "", nil
})

// matchConditions evaluates the match conditions of a webhook with the code of the real server.
func matchConditions(ctx context.Context, h reviewing.Hook, asked *admissionv1.AdmissionRequest) (bool, error) {
	attributes, err := attributesOf(asked)
	if err != nil {
		return false, err
	}
	// The conditions are compiled for each request. That is slow, but a development cluster has few requests.
	var expressions []cel.ExpressionAccessor
	for _, one := range h.MatchConditions {
		expressions = append(expressions, &matchconditions.MatchCondition{Name: one.Name, Expression: one.Expression})
	}
	compiler := cel.NewConditionCompiler(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()))
	compiled := compiler.CompileCondition(
		expressions, cel.OptionalVariableDeclarations{HasAuthorizer: true}, environment.StoredExpressions,
	)
	// The failure policy decides whether an expression that fails rejects the request.
	matcher := matchconditions.NewMatcher(compiled, h.FailurePolicy, "webhook", "", "")
	result := matcher.Match(ctx, attributes, nil, allowAll)
	return result.Matches, result.Error
}

// attributesOf converts the request to the type that the code of the real server expects.
func attributesOf(asked *admissionv1.AdmissionRequest) (*admission.VersionedAttributes, error) {
	object, err := objectIn(asked.Object)
	if err != nil {
		return nil, err
	}
	before, err := objectIn(asked.OldObject)
	if err != nil {
		return nil, err
	}
	kind := schema.GroupVersionKind(asked.Kind)
	return &admission.VersionedAttributes{
		Attributes: admission.NewAttributesRecord(
			object, before, kind, asked.Namespace, asked.Name, schema.GroupVersionResource(asked.Resource),
			asked.SubResource, admission.Operation(asked.Operation), nil, asked.DryRun != nil && *asked.DryRun,
			&user.DefaultInfo{Name: asked.UserInfo.Username, UID: asked.UserInfo.UID, Groups: asked.UserInfo.Groups},
		),
		VersionedObject: object, VersionedOldObject: before, VersionedKind: kind,
	}, nil
}

// objectIn decodes an object of a request. It returns nil if the request does not have the object.
func objectIn(raw runtime.RawExtension) (runtime.Object, error) {
	if len(raw.Raw) == 0 {
		return nil, nil
	}
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(raw.Raw); err != nil {
		return nil, fmt.Errorf("reading the object of the request: %w", err)
	}
	return object, nil
}
