package e2e_test

import (
	"context"
	"os"
	"path/filepath"
	"strconv"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	"github.com/onsi/gomega/gexec"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// ownWebhooks installs the webhook configurations of a project until the end of the spec. It returns the flags with
// which the project's manager serves them.
func ownWebhooks(folder string) (flags []string) {
	GinkgoHelper()
	own := envtest.WebhookInstallOptions{Paths: []string{folder}}
	Expect(own.Install(config)).To(Succeed())
	DeferCleanup(func(ctx context.Context) {
		Expect(own.Cleanup()).To(Succeed())
		for _, one := range own.MutatingWebhooks {
			Expect(client.IgnoreNotFound(api.Delete(ctx, one))).To(Succeed())
		}
		for _, one := range own.ValidatingWebhooks {
			Expect(client.IgnoreNotFound(api.Delete(ctx, one))).To(Succeed())
		}
	})
	ca := filepath.Join(own.LocalServingCertDir, "ca.crt")
	Expect(os.WriteFile(ca, own.LocalServingCAData, 0o600)).To(Succeed())
	port := strconv.Itoa(own.LocalServingPort)
	return []string{
		"-webhook-cert-path", own.LocalServingCertDir,
		"-webhook-port", port, "-webhook-url", "https://localhost:" + port,
	}
}

var _ = Describe("The example of a kubebuilder project", func() {
	folder := filepath.Join("..", "..", "examples", "kubebuilder")

	It("has a reconciler, handlers and webhooks of both kinds beside each other", func(ctx context.Context) {
		install(filepath.Join(folder, "config", "crd", "bases"))
		ns := namespace(ctx)
		program, archive := build(filepath.Join(folder, "cmd")), "TMPDIR="+GinkgoT().TempDir()
		flags := []string{"-health-probe-bind-address", "0"}

		By("running without webhooks, as on a machine that the API server cannot reach")
		session := run(program, []string{archive, "ENABLE_WEBHOOKS=false"}, flags...)
		Eventually(session.Err).Should(gbytes.Say("Opened the archive"))
		Eventually(session.Terminate()).Should(gexec.Exit(0))

		By("running with webhooks")
		flags = append(flags, ownWebhooks(filepath.Join(folder, "config", "webhook"))...)
		session = run(program, []string{archive}, flags...)
		Eventually(session.Err).Should(gbytes.Say("Opened the archive"),
			"the archive opens before any handler is called")
		obj := read(filepath.Join(folder, "config", "samples", "webapp_v1_guestbook.yaml"), ns)
		unsigned := obj.DeepCopy()
		unsigned.Object["spec"] = map[string]any{"title": "A title that no guest who was invited can remember"}
		Eventually(func() error { return api.Create(ctx, unsigned.DeepCopy(), client.DryRunAll) }).Should(
			MatchError(ContainSubstring("a title of 50 bytes is longer than 40")), "the facade rejects a long title")
		unsigned.Object["spec"] = map[string]any{"title": "Short", "moderators": []any{"somebody", ""}}
		Expect(api.Create(ctx, unsigned.DeepCopy(), client.DryRunAll)).To(
			MatchError(ContainSubstring("spec.moderators[1] has no name")),
			"the project's webhook rejects an empty name")
		unsigned.Object["spec"] = map[string]any{"title": "Short"}
		Expect(api.Create(ctx, unsigned, client.DryRunAll)).To(Succeed())
		Expect(unsigned.Object["spec"]).To(HaveKeyWithValue("moderators", []any{"admin"}),
			"the project's webhook sets the default")

		create(ctx, obj)
		Eventually(field(ctx, obj, "status", "invitation")).Should(ContainSubstring("Please sign"),
			"the facade's handler writes the invitation")
		Eventually(field(ctx, obj, "status", "conditions")).Should(HaveLen(1),
			"the project's reconciler writes its condition")
		merge(ctx, obj, `{"spec":{"title":"another one"}}`)
		Eventually(field(ctx, obj, "status", "invitation")).Should(Equal("Please sign another one"))
		remove(ctx, obj)
		Eventually(now(ctx, obj)).Should(BeNil())
		Eventually(session.Terminate()).Should(gexec.Exit(0))
		Expect(session.Err).To(gbytes.Say("Closed the archive"))
	})
})
