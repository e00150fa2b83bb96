package kopf_test

import (
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

func TestMistakesOfNeeds(t *testing.T) {
	groups, verbs := []string{""}, []string{"get"}
	tests := map[string]struct {
		reason string
		rule   rbacv1.PolicyRule
		want   string
	}{
		"complete": {"a rule for a resource is accepted",
			rbacv1.PolicyRule{APIGroups: groups, Resources: []string{"pods/log"}, Verbs: verbs}, ""},
		"path":  {"a path is accepted", rbacv1.PolicyRule{NonResourceURLs: []string{"/metrics"}, Verbs: verbs}, ""},
		"verbs": {"a rule without verbs is an error", rbacv1.PolicyRule{Resources: groups}, "rule 0: it has no Verbs"},
		"group": {"a rule without a group is an error",
			rbacv1.PolicyRule{Resources: []string{"pods"}, Verbs: verbs}, "APIGroups and Resources"},
		"both": {"a rule for a path and a resource is an error", rbacv1.PolicyRule{
			APIGroups: groups, Resources: []string{"pods"}, NonResourceURLs: []string{"/x"}, Verbs: verbs,
		}, "make two rules"},
		"empty": {"an empty resource is an error",
			rbacv1.PolicyRule{APIGroups: groups, Resources: []string{""}, Verbs: verbs}, "empty verb or resource"},
	}
	for name, c := range tests {
		t.Run(name, func(t *testing.T) {
			op := kopf.New("test.example.org")
			op.Needs(c.rule)
			err := op.SetupWithManager(newManager(t, newScheme(t)))
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%s: want %q, got %v", c.reason, c.want, err)
			}
			if err != nil && !strings.Contains(err.Error(), "needs_test.go:") {
				t.Errorf("the error names the call of Needs: %v", err)
			}
		})
	}
}
