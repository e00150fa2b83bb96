package e2e_test

import (
	"context"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	v1 "github.com/kopf-runtime/kopf-runtime/test/e2e/api/v1"
)

// crd defines a kind of the group robustness.example.org whose schema accepts any field.
func crd(kind string, status bool) *apiextensionsv1.CustomResourceDefinition {
	singular, everything := strings.ToLower(kind), true
	version := apiextensionsv1.CustomResourceDefinitionVersion{
		Name: "v1", Served: true, Storage: true, Schema: &apiextensionsv1.CustomResourceValidation{
			OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: &everything},
		},
	}
	if status {
		version.Subresources = &apiextensionsv1.CustomResourceSubresources{
			Status: &apiextensionsv1.CustomResourceSubresourceStatus{},
		}
	}
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: singular + "s.robustness.example.org"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "robustness.example.org", Scope: apiextensionsv1.NamespaceScoped,
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{version},
			Names: apiextensionsv1.CustomResourceDefinitionNames{
				Kind: kind, ListKind: kind + "List", Plural: singular + "s", Singular: singular,
			},
		},
	}
}

// installCRD installs the CRD and waits until it is served.
func installCRD(definition *apiextensionsv1.CustomResourceDefinition) {
	GinkgoHelper()
	_, err := envtest.InstallCRDs(
		config, envtest.CRDInstallOptions{CRDs: []*apiextensionsv1.CustomResourceDefinition{definition}},
	)
	Expect(err).NotTo(HaveOccurred())
}

func comet(ns, name string) *unstructured.Unstructured {
	return raw("robustness.example.org/v1", "Comet", ns, name, map[string]any{"size": int64(1)})
}

var _ = Describe("Kinds", func() {
	It("can be uninstalled while handled, and reinstalled with a status subresource", func(ctx context.Context) {
		ns, seen := namespace(ctx), &calls{}
		definition := crd("Comet", false)
		installCRD(definition)
		op := kopf.New("comets.example.org")
		comets := kopf.ForResource(op, "robustness.example.org/v1", "comets")
		note := func(_ context.Context, c *unstructuredChange) error {
			seen.add("%s %s/%s", c.ID, c.Object.GetNamespace(), c.Object.GetName())
			c.SetResult("done")
			return nil
		}
		comets.OnCreate("create", note)
		comets.OnDelete("delete", note)
		comets.OnResume("resume", note)
		running := start(op)
		first := comet(ns, "halley")
		create(ctx, first)
		Eventually(annotation(ctx, first, "comets.example.org"+lastHandledSuffix)).ShouldNot(BeNil())
		Expect(running.requests.of("halley")).NotTo(ContainElement("PATCH status"))

		Expect(
			envtest.UninstallCRDs(
				config, envtest.CRDInstallOptions{CRDs: []*apiextensionsv1.CustomResourceDefinition{definition}},
			),
		).To(Succeed())
		Eventually(seen.list).Should(Equal([]string{"create " + ns + "/halley", "delete " + ns + "/halley"}))
		Eventually(running.logs).Should(gbytes.Say("Cannot find the resource of a selector.*robustness.example.org"))

		installCRD(crd("Comet", true))
		again := comet(ns, "hale-bopp")
		create(ctx, again)
		Eventually(annotation(ctx, again, "comets.example.org"+lastHandledSuffix)).ShouldNot(BeNil())
		Expect(field(ctx, again, "status", "create")()).To(Equal("done"))
		Expect(running.requests.of("hale-bopp")).To(
			ContainElement("PATCH status"), "the reinstalled kind is written through its status subresource",
		)
		remove(ctx, again)
		Eventually(now(ctx, again)).Should(BeNil())
		Expect(seen.list()[2:]).To(Equal([]string{"create " + ns + "/hale-bopp", "delete " + ns + "/hale-bopp"}))
	})

	It("that are cluster-scoped are handled by operators of one namespace", func(ctx context.Context) {
		ns, seen := namespace(ctx), &calls{}
		op := kopf.New("roles.example.org", settingsFor(ns))
		roles := kopf.For(op, &rbacv1.ClusterRole{}).MatchingLabels("robustness=" + ns)
		note := func(_ context.Context, c *kopf.Change[*rbacv1.ClusterRole]) error {
			seen.add("%s %s", c.ID, c.Object.Name)
			c.Info("Noted", "this is about "+c.Object.Name)
			return nil
		}
		roles.OnCreate("create", note)
		roles.OnUpdate("update", note)
		roles.OnDelete("delete", note)
		start(op)
		obj := raw("rbac.authorization.k8s.io/v1", "ClusterRole", "", "role-"+ns, nil)
		delete(obj.Object, "spec")
		obj.SetLabels(map[string]string{"robustness": ns})
		create(ctx, obj)
		Eventually(annotation(ctx, obj, "roles.example.org"+lastHandledSuffix)).ShouldNot(BeNil())
		merge(ctx, obj, `{"rules":[{"apiGroups":[""],"resources":["pods"],"verbs":["get"]}]}`)
		Eventually(annotation(ctx, obj, "roles.example.org"+lastHandledSuffix)).Should(ContainSubstring("pods"))
		remove(ctx, obj)
		Eventually(now(ctx, obj)).Should(BeNil())
		Expect(seen.list()).To(HaveExactElements(HavePrefix("create"), HavePrefix("update"), HavePrefix("delete")))
		Eventually(func() (counts []int32, err error) {
			events := &corev1.EventList{}
			err = api.List(ctx, events, client.InNamespace(metav1.NamespaceDefault))
			for _, event := range events.Items {
				if event.InvolvedObject.Name == obj.GetName() {
					counts = append(counts, event.Count)
				}
			}
			return counts, err
		}).Should(Equal([]int32{3}), "identical events of a cluster-scoped object are merged in the default namespace")
	})

	It("of the core group are handled by typed and dynamic handlers in order", func(ctx context.Context) {
		ns, seen := namespace(ctx), &calls{}
		op := kopf.New("core.example.org", settingsFor(ns))
		kopf.For(op, &corev1.ConfigMap{}).MatchingLabels("robustness").OnCreate("typed",
			func(_ context.Context, c *kopf.Change[*corev1.ConfigMap]) error {
				seen.add("typed %s", c.Object.Data["a"])
				c.Patch(func(m *corev1.ConfigMap) { m.Data["b"] = "from typed" })
				return nil
			})
		kopf.ForResource(op, "v1", "configmaps").MatchingLabels("robustness").OnCreate("raw",
			func(_ context.Context, c *unstructuredChange) error {
				value, _, _ := unstructured.NestedString(c.Object.Object, "data", "b")
				seen.add("raw %s", value)
				return nil
			})
		start(op)
		obj := raw("v1", "ConfigMap", ns, "core", nil)
		delete(obj.Object, "spec")
		obj.Object["data"] = map[string]any{"a": "1"}
		obj.SetLabels(map[string]string{"robustness": "yes"})
		create(ctx, obj)
		Eventually(annotation(ctx, obj, "core.example.org"+lastHandledSuffix)).ShouldNot(BeNil())
		Expect(field(ctx, obj, "data")()).To(Equal(map[string]any{"a": "1", "b": "from typed"}))
		Expect(seen.list()).To(Equal([]string{"typed 1", "raw from typed"}))
	})

	It("are handled with rights in a single namespace", func(ctx context.Context) {
		ns, seen := namespace(ctx), &calls{}
		allowIn(ctx, ns, "tenant")
		user, err := environment.AddUser(envtest.User{Name: "tenant"}, nil)
		Expect(err).NotTo(HaveOccurred())
		op := recorder("tenant.example.org", ns, seen)
		kopf.For(op, &v1.Gadget{}).OnCreate("speak", func(_ context.Context, c *gadgetChange) error {
			c.Info("Spoken", "here")
			return nil
		})
		running := startAs(user.Config(), op)
		obj := gadget(ns, "tenant", map[string]any{"size": int64(1)})
		create(ctx, obj)
		Eventually(annotation(ctx, obj, "tenant.example.org"+lastHandledSuffix)).ShouldNot(BeNil())
		merge(ctx, obj, `{"spec":{"size":2}}`)
		Eventually(annotation(ctx, obj, "tenant.example.org"+lastHandledSuffix)).Should(ContainSubstring(`"size":2`))
		remove(ctx, obj)
		Eventually(now(ctx, obj)).Should(BeNil())
		Expect(seen.list()).To(HaveExactElements(HavePrefix("create"), HavePrefix("update"), HavePrefix("delete")))
		Eventually(func() (int, error) {
			events := &corev1.EventList{}
			err := api.List(ctx, events, client.InNamespace(ns))
			return len(events.Items), err
		}).Should(Equal(1))
		Expect(string(running.logs.Contents())).NotTo(ContainSubstring(`"level":"error"`))
		Expect(strings.Count(string(running.logs.Contents()), "forbidden")).To(Equal(1),
			"the operator works with these rights and warns once that it cannot watch CRDs")
		Expect(string(running.logs.Contents())).To(ContainSubstring(`"level":"warn"`))
	})
})

// allowIn grants a user the rights of an operator in one namespace.
func allowIn(ctx context.Context, ns, user string) {
	GinkgoHelper()
	Expect(api.Create(ctx, &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: user},
		Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{"e2e.example.org"}, Resources: []string{"gadgets"}, Verbs: []string{
				"get", "list", "watch", "patch",
			}},
			{APIGroups: []string{""}, Resources: []string{"events"}, Verbs: []string{"create"}},
		}})).To(Succeed())
	Expect(api.Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: user},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: user},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	})).To(Succeed())
}
