package e2e_test

import (
	"context"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	v1 "github.com/kopf-runtime/kopf-runtime/test/e2e/api/v1"
)

type (
	unstructuredObject = unstructured.Unstructured
	unstructuredChange = kopf.Change[*unstructured.Unstructured]
)

// allow grants a user verbs on the kinds of the suite.
func allow(ctx context.Context, user string, verbs ...string) (grant *rbacv1.ClusterRole) {
	GinkgoHelper()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: user}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{"e2e.example.org"}, Resources: []string{"*"}, Verbs: verbs},
	}}
	Expect(api.Create(ctx, role)).To(Succeed())
	Expect(api.Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: user},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: user},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	})).To(Succeed())
	return role
}

// requireOthersHandled requires that the operator still handles another object of the kind.
func requireOthersHandled(ctx context.Context, ns, operator string) {
	GinkgoHelper()
	other := gadget(ns, "other", map[string]any{"size": int64(9)})
	create(ctx, other)
	Eventually(annotation(ctx, other, operator+lastHandledSuffix)).ShouldNot(BeNil())
	remove(ctx, other)
	Eventually(now(ctx, other)).Should(BeNil())
}

var _ = Describe("An operator that lacks", func() {
	It("the permission to patch does not repeat handlers, and continues when it is granted",
		func(ctx context.Context) {
			ns, seen := namespace(ctx), &calls{}
			role := allow(ctx, "reader", "get", "list", "watch")
			user, err := environment.AddUser(envtest.User{Name: "reader"}, nil)
			Expect(err).NotTo(HaveOccurred())
			op := kopf.New("reader.example.org", settingsFor(ns))
			kopf.For(
				op, &v1.Gadget{},
			).OnCreate("c", func(context.Context, *gadgetChange) error { seen.add("call"); return nil })
			running := startAs(user.Config(), op)
			obj := gadget(ns, "unwritable", map[string]any{"size": int64(1)})
			create(ctx, obj)
			Eventually(running.logs).Should(
				gbytes.Say(`Cannot handle the object now.*"name":"unwritable".*"handlers":\["c"\].*forbidden`),
			)
			Eventually(func() int { return running.requests.refusedOf("unwritable") }).Should(BeNumerically(">=", 3))
			Expect(seen.list()).To(HaveLen(1), "an unsaved result is kept and its handler does not run again")
			Expect(running.requests.refusedOf("unwritable")).To(BeNumerically("<", 10),
				"failed writes are retried with a delay")
			role.Rules[0].Verbs = append(role.Rules[0].Verbs, "patch")
			Expect(api.Update(ctx, role)).To(Succeed())
			Eventually(annotation(ctx, obj, "reader.example.org"+lastHandledSuffix)).ShouldNot(BeNil())
			Expect(seen.list()).To(HaveLen(1))
			remove(ctx, obj)
			Eventually(now(ctx, obj)).Should(BeNil())
		})

	It("a custom kind serves the others, and that one once its CRD is installed", func(ctx context.Context) {
		ns, seen := namespace(ctx), &calls{}
		op := kopf.New("late.example.org", settingsFor(ns))
		kopf.ForResource(op, "late.example.org/v1", "latecomers").OnCreate("c",
			func(_ context.Context, c *unstructuredChange) error {
				seen.add("late %s", c.Object.GetName())
				return nil
			})
		kopf.For(op, &v1.Gadget{}).OnCreate("c", func(context.Context, *gadgetChange) error { return nil })
		running := start(op)
		Eventually(running.logs).Should(
			gbytes.Say(`Cannot find the resource of a selector.*late.example.org/v1 latecomers`),
		)
		requireOthersHandled(ctx, ns, "late.example.org")
		_, err := envtest.InstallCRDs(
			config, envtest.CRDInstallOptions{Paths: []string{filepath.Join("testdata", "late.yaml")}},
		)
		Expect(err).NotTo(HaveOccurred())
		create(ctx, raw("late.example.org/v1", "Latecomer", ns, "at-last", map[string]any{"size": int64(1)}))
		Eventually(seen.list).Should(Equal([]string{"late at-last"}))
		Expect(
			strings.Count(string(running.logs.Contents()), "Cannot find the resource of a selector"),
		).To(BeNumerically("<=", 2), "the missing resource is logged once for each reason")
	})
})
