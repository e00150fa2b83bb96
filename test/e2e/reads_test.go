package e2e_test

import (
	"context"
	"os"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// kubeconfigOf creates a user with all rights on the kinds of the suite and the right to get config maps.
func kubeconfigOf(ctx context.Context, name string) (path string) {
	GinkgoHelper()
	role := allow(ctx, name, "*")
	role.Rules = append(role.Rules, rbacv1.PolicyRule{
		APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get"},
	})
	Expect(api.Update(ctx, role)).To(Succeed())
	user, err := environment.AddUser(envtest.User{Name: name}, nil)
	Expect(err).NotTo(HaveOccurred())
	content, err := user.KubeConfig()
	Expect(err).NotTo(HaveOccurred())
	path = filepath.Join(GinkgoT().TempDir(), "kubeconfig")
	Expect(os.WriteFile(path, content, 0o600)).To(Succeed())
	return path
}

var _ = Describe("The clients of a program", func() {
	DescribeTable("read unwatched kinds, and fail without waiting for kinds that they may not list",
		func(ctx context.Context, user, cache, refusal string) {
			ns, elsewhere := namespace(ctx), namespace(ctx)
			Expect(api.Create(ctx, &corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{Namespace: elsewhere, Name: "shared"}, Data: map[string]string{"a": "b"},
			})).To(Succeed())
			out := process(ns, "KUBECONFIG="+kubeconfigOf(ctx, user), "E2E_CACHE="+cache)
			obj := gadget(ns, "reader", map[string]any{"size": int64(1)})
			obj.SetLabels(map[string]string{"reads": elsewhere})
			create(ctx, obj)
			Eventually(out).Should(gbytes.Say(`READ map\[a:b\] by Client: <nil>`), "Get needs no right to list")
			Eventually(out).Should(gbytes.Say(`READ map\[a:b\] by Live: <nil>`))
			Eventually(out).Should(gbytes.Say("LISTED: " + refusal))
			Eventually(annotation(ctx, obj, "killed.example.org"+lastHandledSuffix)).ShouldNot(BeNil())
		},
		Entry("live", "live-reader", "", `secrets is forbidden: User "live-reader" cannot list`),
		Entry("from a cache", "cached-reader", "secrets",
			`reading /v1, Kind=Secret from the cache, as Settings.CachedReads says: it cannot be filled: .*`+
				`secrets is forbidden: User "cached-reader" cannot list`),
	)
})
