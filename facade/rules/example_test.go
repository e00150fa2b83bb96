package rules_test

import (
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/kopf-runtime/kopf-runtime/facade/rules"
)

// A unit test can evaluate a rule.
func ExampleRule_Evaluate() {
	rule := rules.New("size-grows", "oldObject == null || object.spec.size >= oldObject.spec.size",
		"the size never shrinks", rules.MessageExpression("'it never shrinks below ' + string(oldObject.spec.size)"))

	for _, size := range []int32{5, 3} {
		old, object := &Database{}, &Database{}
		old.Spec.Size, object.Spec.Size = 4, size
		verdict, err := rule.Evaluate(object, old)
		fmt.Println(verdict.Allowed, verdict.Message, err)
	}
	// Output:
	// true  <nil>
	// false it never shrinks below 4 <nil>
}

// Check reports mistakes without an object.
func ExampleRule_Check() {
	rule := rules.New("r", "object.spec.sise > 0", "the size is positive")
	fmt.Println(rule.Check(&Database{}))
	// Output:
	// rule "r": of rules_test.Database: the expression: line 1, column 12: undefined field 'sise': did you mean size?
}

// A policy enforces rules while no operator runs.
func ExamplePolicy() {
	rule := rules.New("size-grows", "oldObject == null || object.spec.size >= oldObject.spec.size", "it never shrinks")
	policy, binding, err := rules.Policy("databases.example.org", []admissionregistrationv1.Rule{{
		APIGroups: []string{"example.org"}, APIVersions: []string{"v1"}, Resources: []string{"databases"},
	}}, rule)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(policy.Kind, policy.Spec.Validations[0].Message)
	fmt.Println(binding.Kind, binding.Spec.ValidationActions)
	// Output:
	// ValidatingAdmissionPolicy it never shrinks
	// ValidatingAdmissionPolicyBinding [Deny]
}
