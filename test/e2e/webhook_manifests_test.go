package e2e_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	v1 "github.com/kopf-runtime/kopf-runtime/test/e2e/api/v1"
)

// withComponents returns a copy of the manifests that includes some of their optional components.
func withComponents(names ...string) (folder string) {
	GinkgoHelper()
	folder = filepath.Join(GinkgoT().TempDir(), "config")
	Expect(os.CopyFS(folder, os.DirFS(manifests))).To(Succeed())
	file, err := os.OpenFile(filepath.Join(folder, "kustomization.yaml"), os.O_APPEND|os.O_WRONLY, 0)
	Expect(err).NotTo(HaveOccurred())
	defer file.Close()
	_, err = file.WriteString("components: [" + strings.Join(names, ", ") + "]\n")
	Expect(err).NotTo(HaveOccurred())
	return folder
}

var _ = Describe("The manifests in config/webhook", func() {
	It("route to the operator and grant it the rights for admission handlers", func(ctx context.Context) {
		apply := exec.CommandContext(ctx, filepath.Join(os.Getenv("KUBEBUILDER_ASSETS"), "kubectl"), "apply",
			"--kubeconfig", userOf(ctx, "installer", []string{"system:masters"}),
			"--server-side", "--force-conflicts", "-k", withComponents("webhook", "replicas"))
		out, err := apply.CombinedOutput()
		Expect(err).NotTo(HaveOccurred(), string(out))

		var service corev1.Service
		const ours = "kopf-runtime.example.org" // in config/webhook/role.yaml
		key := client.ObjectKey{Namespace: "kopf-runtime-system", Name: "kopf-runtime-webhook"}
		Expect(api.Get(ctx, key, &service)).To(Succeed())
		deployment := raw("apps/v1", "Deployment", key.Namespace, "kopf-runtime-operator", nil)
		Expect(api.Get(ctx, client.ObjectKeyFromObject(deployment), deployment)).To(Succeed())
		replicas, err := field(ctx, deployment, "spec", "replicas")()
		Expect(err).NotTo(HaveOccurred())
		Expect(replicas).To(BeEquivalentTo(2), "two replicas answer reviews during updates")
		labels, err := field(ctx, deployment, "spec", "template", "metadata", "labels")()
		Expect(err).NotTo(HaveOccurred())
		for label, value := range service.Spec.Selector {
			Expect(labels).To(HaveKeyWithValue(label, value), "the Service selects the pods of the operator")
		}

		own := rest.CopyConfig(config)
		own.Impersonate.UserName = "system:serviceaccount:" + key.Namespace + ":kopf-runtime-operator"
		ns := namespace(ctx)
		op := kopf.New("manifests.example.org", kopf.Settings{Admission: kopf.AdmissionSettings{
			Managed: ours, Service: key.String(), Secret: key.String() + "-certificate",
		}})
		kopf.For(op, &v1.Widget{}).WithLabel("asked", ns).Validate("nothing",
			func(context.Context, *widgetAdmission) error { return nil })
		running := startAs(own, op)
		restricted, err := client.New(own, client.Options{Scheme: api.Scheme()})
		Expect(err).NotTo(HaveOccurred())
		for _, others := range []client.Object{
			&admissionregistrationv1.ValidatingWebhookConfiguration{},
			&admissionregistrationv1.MutatingWebhookConfiguration{}, &corev1.Secret{},
		} {
			err := restricted.Get(ctx, client.ObjectKey{Namespace: key.Namespace, Name: "others"}, others)
			Expect(apierrors.IsForbidden(err)).To(BeTrue(), "objects of other operators are forbidden: %v", err)
		}

		var kept admissionregistrationv1.ValidatingWebhookConfiguration
		Eventually(func() ([]admissionregistrationv1.ValidatingWebhook, error) {
			err := api.Get(ctx, client.ObjectKey{Name: ours}, &kept)
			return kept.Webhooks, client.IgnoreNotFound(err)
		}).Should(HaveLen(1))
		Expect(kept.Webhooks[0].ClientConfig.Service.Name).To(Equal(key.Name))
		Expect(*kept.Webhooks[0].ClientConfig.Service.Port).To(Equal(service.Spec.Ports[0].Port))
		Expect(kept.Webhooks[0].ClientConfig.CABundle).NotTo(BeEmpty())
		running.stop()
		Expect(api.Get(ctx, client.ObjectKeyFromObject(&kept), &kept)).To(Succeed())
		Expect(kept.Webhooks).To(BeEmpty(), "the operator may remove its own entries")
	})
})
