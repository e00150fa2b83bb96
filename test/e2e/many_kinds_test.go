package e2e_test

import (
	"context"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
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

	It("follow CRDs that are installed and removed", func(ctx context.Context) {
		ns, seen := namespace(ctx), &calls{}
		op := kopf.New("meteors.example.org", settingsFor(ns))
		kopf.ForResourceFunc(
			op, func(r kopf.Resource) bool { return r.Group == "robustness.example.org" && r.Plural == "meteors" },
		).
			OnCreate("note", note(seen))
		running := start(op)
		Eventually(running.logs).Should(gbytes.Say("Cannot find the resource of a selector"))
		for _, name := range []string{"first", "second"} {
			definition := crd("Meteor", true)
			installCRD(definition)
			create(ctx, raw("robustness.example.org/v1", "Meteor", ns, name, map[string]any{"size": int64(1)}))
			Eventually(seen.list).Should(ContainElement("Meteor " + name))
			Expect(
				envtest.UninstallCRDs(
					config, envtest.CRDInstallOptions{CRDs: []*apiextensionsv1.CustomResourceDefinition{definition}},
				),
			).To(Succeed())
			Eventually(running.logs).Should(gbytes.Say("changed or disappeared.*Kind=Meteor"))
			Eventually(func() error {
				return api.Get(ctx, client.ObjectKeyFromObject(definition), &apiextensionsv1.CustomResourceDefinition{})
			}).ShouldNot(Succeed())
		}
	})

	It("leave out Kubernetes events, which would cause further events", func(ctx context.Context) {
		ns, seen := namespace(ctx), &calls{}
		op := kopf.New("everything.example.org", settingsFor(ns))
		kopf.ForResource(
			op, "*",
		).OnEvent("note", func(_ context.Context, e *kopf.WatchEvent[*unstructuredObject]) error {
			if e.Object.GetNamespace() == ns {
				seen.add("%s %s", e.Object.GetKind(), e.Object.GetName())
			}
			e.Info("Seen", "by the handler of everything")
			return nil
		})
		start(op)
		for _, obj := range []*unstructuredObject{
			gadget(ns, "one", map[string]any{}), widget(ns, "two", map[string]any{}),
			raw("v1", "ConfigMap", ns, "three", nil),
		} {
			if obj.GetKind() == "ConfigMap" {
				delete(obj.Object, "spec")
			}
			create(ctx, obj)
			Eventually(seen.list).Should(ContainElement(obj.GetKind() + " " + obj.GetName()))
		}
		Consistently(seen.list, "1s").ShouldNot(ContainElement(HavePrefix("Event ")))
	})
})
