package e2e_test

import (
	"context"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

var _ = Describe("Selectors of many kinds", func() {
	note := func(seen *calls) kopf.ChangeFunc[*unstructuredObject] {
		return func(_ context.Context, c *unstructuredChange) error {
			seen.add("%s %s", c.Object.GetKind(), c.Object.GetName())
			return nil
		}
	}

	It("report a forbidden kind and handle the others", func(ctx context.Context) {
		ns, seen := namespace(ctx), &calls{}
		role := allow(ctx, "gadgeteer", "get", "list", "watch", "patch")
		role.Rules[0].Resources = []string{"gadgets"}
		Expect(api.Update(ctx, role)).To(Succeed())
		user, err := environment.AddUser(envtest.User{Name: "gadgeteer"}, nil)
		Expect(err).NotTo(HaveOccurred())
		op := kopf.New("many.example.org", settingsFor(ns))
		kopf.ForResource(op, "e2e.example.org", "*").OnCreate("note", note(seen))
		running := startAs(user.Config(), op)
		Eventually(running.logs).Should(
			gbytes.Say(
				`Cannot list or watch a resource.*"kind":"Widget".*"handlers":\["note"\].*widgets.e2e.example.org ` +
					`is forbidden`,
			),
		)
		create(ctx, widget(ns, "unseen", map[string]any{"size": int64(1)}))
		create(ctx, gadget(ns, "seen", map[string]any{"size": int64(1)}))
		Eventually(seen.list).Should(Equal([]string{"Gadget seen"}))
		Expect(
			strings.Count(string(running.logs.Contents()), "Cannot watch CRDs"),
		).To(Equal(1), "the missing right to watch CRDs is logged once")

		role.Rules = append(
			role.Rules,
			rbacv1.PolicyRule{
				APIGroups: []string{"e2e.example.org"}, Resources: []string{"widgets"}, Verbs: role.Rules[0].Verbs,
			},
		)
		Expect(api.Update(ctx, role)).To(Succeed())
		Eventually(seen.list).Should(Equal([]string{"Gadget seen", "Widget unseen"}),
			"the kind is handled as soon as the right is granted")
	})
})
