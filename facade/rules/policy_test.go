package rules_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/kopf-runtime/kopf-runtime/facade/rules"
)

const wantPolicy = `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: databases.example.org}
spec:
  failurePolicy: Fail
  matchConstraints:
    matchPolicy: Equivalent
    resourceRules:
    - apiGroups: [example.org]
      apiVersions: [v1]
      operations: [CREATE, UPDATE]
      resources: [databases]
  validations:
  - expression: "oldObject == null || object.spec.size >= oldObject.spec.size"
    message: it never shrinks
    reason: Invalid
  - expression: "!(request.operation in ['UPDATE']) || (oldObject.spec.owner == object.spec.owner\n)"
    message: "failed expression: oldObject.spec.owner == object.spec.owner"
    messageExpression: "'it is of ' + string(oldObject.spec.owner)"
    reason: Forbidden
`

func TestPolicy(t *testing.T) {
	policy, binding, err := rules.Policy("databases.example.org", databases(),
		rules.New("size-grows", growthExpression, "it never shrinks"),
		rules.New("owner-stays", "oldObject.spec.owner == object.spec.owner", "", rules.Operations("UPDATE"),
			rules.Reason(metav1.StatusReasonForbidden),
			rules.MessageExpression("'it is of ' + string(oldObject.spec.owner)")))
	if err != nil {
		t.Fatal(err)
	}
	want := &admissionregistrationv1.ValidatingAdmissionPolicy{}
	if err := yaml.UnmarshalStrict([]byte(wantPolicy), want); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, policy); diff != "" {
		t.Errorf("the policy: -want, +got:\n%s", diff)
	}
	wantBinding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
		TypeMeta: metav1.TypeMeta{
			APIVersion: "admissionregistration.k8s.io/v1", Kind: "ValidatingAdmissionPolicyBinding",
		},
		ObjectMeta: metav1.ObjectMeta{Name: "databases.example.org"},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName:        "databases.example.org",
			ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
		},
	}
	if diff := cmp.Diff(wantBinding, binding); diff != "" {
		t.Errorf("the binding: -want, +got:\n%s", diff)
	}
}

func TestPolicySharesNothing(t *testing.T) {
	resources := databases()
	resources[0].Scope = ptr.To(admissionregistrationv1.NamespacedScope)
	policy, _, err := rules.Policy("p", resources, rules.New("r", "object != null", "m"))
	if err != nil {
		t.Fatal(err)
	}
	resources[0].Resources[0] = "others"
	made := policy.Spec.MatchConstraints.ResourceRules[0]
	if made.Resources[0] != "databases" || *made.Scope != admissionregistrationv1.NamespacedScope {
		t.Errorf("the policy is for %v, want the resources as they were given", made.Rule)
	}
}

func TestPolicyMistakes(t *testing.T) {
	fine := rules.New("r", "object != null", "m")
	cases := map[string]struct {
		reason, name string
		resources    []admissionregistrationv1.Rule
		rules        []*rules.Rule
		want         string
	}{
		"Name": {
			reason: "a name that is not a subdomain is an error", name: "Databases", resources: databases(),
			rules: []*rules.Rule{fine},
			want:  "the name: a lowercase RFC 1123 subdomain",
		},
		"NoResources": {reason: "a policy without resources is an error",
			name: "p", rules: []*rules.Rule{fine}, want: "no resources"},
		"NoVersions": {
			reason: "a resource without versions is an error", name: "p", rules: []*rules.Rule{fine},
			resources: []admissionregistrationv1.Rule{{APIGroups: []string{""}, Resources: []string{"pods"}}},
			want:      "resources[0]: APIGroups, APIVersions and Resources",
		},
		"NoRules": {reason: "a policy without rules is an error",
			name: "p", resources: databases(), want: "there are no rules"},
		"Twice": {
			reason: "a repeated rule id is an error", name: "p", resources: databases(),
			rules: []*rules.Rule{fine, fine},
			want:  `rule "r": the id is there twice`,
		},
		"Wrong": {
			reason: "an invalid rule is an error of the policy", name: "p", resources: databases(),
			rules: []*rules.Rule{fine, rules.New("other", "1", "m")}, want: `rule "other": must evaluate to bool`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			policy, binding, err := rules.Policy(tc.name, tc.resources, tc.rules...)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s\nPolicy(...): got %v, want an error with %q", tc.reason, err, tc.want)
			}
			if policy != nil || binding != nil {
				t.Errorf("%s\nPolicy(...): want no policy and no binding with the error, got %v, %v",
					tc.reason, policy, binding)
			}
		})
	}
}
