package rules

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"
)

// Policy returns a policy of the API server with these rules, and a binding that activates it for all objects of the
// resources. Both have the name, which must be a DNS subdomain. They take effect shortly after their creation and need
// no running operator. Encode them as YAML for kubectl apply.
//
//	rules.Policy("databases.example.org", []admissionregistrationv1.Rule{{
//		APIGroups: []string{"example.org"}, APIVersions: []string{"v1"}, Resources: []string{"databases"},
//	}}, grows, named)
//
// Each rule only applies to its own operations. An API server with fewer CEL functions than this version of the
// libraries rejects a policy that uses newer ones.
func Policy(name string, resources []admissionregistrationv1.Rule, rules ...*Rule) (
	policy *admissionregistrationv1.ValidatingAdmissionPolicy,
	binding *admissionregistrationv1.ValidatingAdmissionPolicyBinding, err error,
) {
	if err := checkPolicy(name, resources, rules); err != nil {
		return nil, nil, fmt.Errorf("rules.Policy(%q): %w", name, err)
	}
	// A policy has one list of operations for all of its rules. It must have each operation of any rule.
	operations := unionOfOperations(rules)
	policy = &admissionregistrationv1.ValidatingAdmissionPolicy{
		TypeMeta:   typeMeta("ValidatingAdmissionPolicy"),
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			// Fail denies requests for which an expression ends in an error, as the handler of the operator does.
			FailurePolicy:    ptr.To(admissionregistrationv1.Fail),
			MatchConstraints: matchConstraints(resources, operations),
		},
	}
	for _, rule := range rules {
		policy.Spec.Validations = append(policy.Spec.Validations, rule.policyValidation(operations))
	}
	binding = &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
		TypeMeta:   typeMeta("ValidatingAdmissionPolicyBinding"),
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName:        name,
			ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
		},
	}
	return policy, binding, nil
}

// matchConstraints returns the match constraints of a policy. Equivalent also covers requests for other versions of the
// resources. The caller's rules are copied, because the result must not change with them.
func matchConstraints(
	resources []admissionregistrationv1.Rule, operations []admissionregistrationv1.OperationType,
) *admissionregistrationv1.MatchResources {
	made := &admissionregistrationv1.MatchResources{MatchPolicy: ptr.To(admissionregistrationv1.Equivalent)}
	for i := range resources {
		made.ResourceRules = append(made.ResourceRules, admissionregistrationv1.NamedRuleWithOperations{
			RuleWithOperations: admissionregistrationv1.RuleWithOperations{
				Operations: slices.Clone(operations), Rule: *resources[i].DeepCopy(),
			},
		})
	}
	return made
}

// typeMeta returns the apiVersion and kind, which are needed in YAML.
func typeMeta(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: admissionregistrationv1.SchemeGroupVersion.String(), Kind: kind}
}

// policyValidation returns the rule as part of a policy for these operations, which can be more than its own.
func (r *Rule) policyValidation(operations []admissionregistrationv1.OperationType) admissionregistrationv1.Validation {
	made := admissionregistrationv1.Validation{
		Expression: r.expression, Message: r.message, MessageExpression: r.messageExpression, Reason: ptr.To(r.reason),
	}
	var own []string
	for _, operation := range operations {
		if slices.Contains(r.operations, operation) {
			own = append(own, fmt.Sprintf("'%s'", operation))
		}
	}
	// The condition must be true for all other operations. A line break ends a comment at the end of the expression.
	// Without a fixed message, the API server would show the whole condition.
	if len(own) < len(operations) {
		made.Expression = fmt.Sprintf("!(request.operation in [%s]) || (%s\n)", strings.Join(own, ", "), r.expression)
		if made.Message == "" {
			made.Message = r.fixedMessage()
		}
	}
	return made
}

// unionOfOperations returns the operations of all rules, each once, in a fixed order.
func unionOfOperations(rules []*Rule) (all []admissionregistrationv1.OperationType) {
	for _, operation := range []admissionregistrationv1.OperationType{
		admissionregistrationv1.Create, admissionregistrationv1.Update, admissionregistrationv1.Delete,
	} {
		if slices.ContainsFunc(rules, func(r *Rule) bool { return slices.Contains(r.operations, operation) }) {
			all = append(all, operation)
		}
	}
	return all
}

// checkPolicy returns all errors in the arguments of a policy, including those of its rules. Rules with the same id are
// an error, as in an operator.
func checkPolicy(name string, resources []admissionregistrationv1.Rule, rules []*Rule) error {
	var found []error
	for _, problem := range validation.IsDNS1123Subdomain(name) {
		found = append(found, fmt.Errorf("the name: %s", problem))
	}
	if len(resources) == 0 {
		found = append(found, errors.New("there are no resources: say which objects the rules are for"))
	}
	for i, resource := range resources {
		if len(resource.APIGroups) == 0 || len(resource.APIVersions) == 0 || len(resource.Resources) == 0 {
			found = append(found, fmt.Errorf(
				"resources[%d]: APIGroups, APIVersions and Resources must each have something in them", i,
			))
		}
	}
	if len(rules) == 0 {
		found = append(found, errors.New("there are no rules"))
	}
	known := map[string]bool{}
	for _, rule := range rules {
		if err := rule.Err(); err != nil {
			found = append(found, err)
		} else if known[rule.id] {
			found = append(found, rule.withRuleID(errors.New("the id is there twice: give every rule its own")))
		} else {
			known[rule.id] = true
		}
	}
	return errors.Join(found...)
}
