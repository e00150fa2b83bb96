package e2e_test

import (
	"bytes"
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	v1 "github.com/kopf-runtime/kopf-runtime/test/e2e/api/v1"
)

var _ = Describe("The command preflight", func() {
	It("names the handler and the rule that RBAC lacks, until it is added", func(ctx context.Context) {
		role := allow(ctx, "checked", "get", "list", "watch")
		kubeconfig := userOf(ctx, "checked", nil)
		check := func() (int, string) {
			op, out := kopf.New("checked.example.org", kopf.Settings{
				AddToScheme: runtime.SchemeBuilder{v1.AddToScheme},
			}), &bytes.Buffer{}
			kopf.For(op, &v1.Gadget{}).OnCreate("provision", func(context.Context, *gadgetChange) error { return nil })
			cmd := op.Command()
			cmd.SetArgs([]string{"preflight", "-A", "--kubeconfig", kubeconfig})
			cmd.SetOut(out)
			cmd.SetErr(out)
			return kopf.ExitCode(cmd.ExecuteContext(ctx)), out.String()
		}
		code, out := check()
		Expect(code).To(Equal(1), out)
		Expect(out).To(MatchRegexp(`failed +permission +patch gadgets.e2e.example.org +provision`))
		Expect(out).To(ContainSubstring(
			`add this rule to a ClusterRole of the operator: {"verbs":["patch"],"apiGroups":["e2e.example.org"]`))
		role.Rules = append(role.Rules, rbacv1.PolicyRule{
			APIGroups: []string{"e2e.example.org"}, Resources: []string{"gadgets"}, Verbs: []string{"patch"},
		})
		Expect(api.Update(ctx, role)).To(Succeed())
		Eventually(func() int { code, out = check(); return code }).Should(Equal(0), func() string { return out })
		Expect(out).To(MatchRegexp(`ok +permission +get,patch gadgets.e2e.example.org +provision`))
	})
})
