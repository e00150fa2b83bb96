package e2e_test

import (
	"context"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// This spec checks what the example secrets leaves in the cluster: objects of the same name that belong to others stay.
var _ = It("The example secrets removes only its own objects", func(ctx context.Context) {
	folder := filepath.Join("..", "..", "examples", "secrets")
	install(filepath.Join(folder, "crd.yaml"))
	ns, shared, taken := namespace(ctx), "shares-here", "shares-taken"
	for _, name := range []string{shared, taken} {
		meta := metav1.ObjectMeta{Name: name, Labels: map[string]string{"shares": "yes"}}
		Expect(api.Create(ctx, &corev1.Namespace{ObjectMeta: meta})).To(Succeed())
	}
	createServiceAccount(ctx, shared, "own")
	createServiceAccount(ctx, taken, "registry")
	theirs := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: taken, Name: "registry"}}
	Expect(api.Create(ctx, theirs)).To(Succeed())
	applyOrRemoveFile(ctx, "apply", filepath.Join(folder, "source.yaml"), ns)
	share := raw("secrets.example.org/v1", "SharedSecret", ns, "registry", map[string]any{
		"source": "registry", "namespaces": "shares=yes", "serviceAccounts": []any{"builder"},
	})
	run(build(folder), nil, "-n", ns)

	create(ctx, share)
	Eventually(field(ctx, share, "status", "places", shared, "state")).Should(Equal("succeeded"))
	Eventually(field(ctx, share, "status", "places", taken, "state")).Should(Equal("failed"))
	Expect(pullSecrets(ctx, shared)).To(Equal([]string{"own", "registry"}))

	remove(ctx, share)
	Eventually(now(ctx, share)).Should(BeNil())
	Expect(pullSecrets(ctx, shared)).To(Equal([]string{"own"}))
	Expect(pullSecrets(ctx, taken)).To(Equal([]string{"registry"}), "a secret of another owner stays referenced")
	Expect(api.Get(ctx, client.ObjectKeyFromObject(theirs), theirs)).To(Succeed())
})

// createServiceAccount creates a service account with an image pull secret.
func createServiceAccount(ctx context.Context, ns, secret string) {
	GinkgoHelper()
	Expect(api.Create(ctx, &corev1.ServiceAccount{
		ObjectMeta:       metav1.ObjectMeta{Namespace: ns, Name: "builder"},
		ImagePullSecrets: []corev1.LocalObjectReference{{Name: secret}},
	})).To(Succeed())
}

// pullSecrets returns the image pull secrets of the service account.
func pullSecrets(ctx context.Context, ns string) (names []string) {
	GinkgoHelper()
	account := &corev1.ServiceAccount{}
	Expect(api.Get(ctx, client.ObjectKey{Namespace: ns, Name: "builder"}, account)).To(Succeed())
	for _, secret := range account.ImagePullSecrets {
		names = append(names, secret.Name)
	}
	return names
}
