package e2e_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"syscall"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	"github.com/onsi/gomega/gexec"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// process starts the program in test/e2e/operator.
func process(ns string, env ...string) *gexec.Session {
	GinkgoHelper()
	return run(build(operatorFolder), env, "-n", ns)
}

// kubeconfigs has the file of each control plane.
var kubeconfigs = map[*envtest.Environment]string{}

// kubeconfigPath returns a file for the control plane that the spec uses.
func kubeconfigPath() string {
	GinkgoHelper()
	if kubeconfigs[environment] == "" {
		user, err := environment.AddUser(envtest.User{Name: "killed", Groups: []string{"system:masters"}}, nil)
		Expect(err).NotTo(HaveOccurred())
		content, err := user.KubeConfig()
		Expect(err).NotTo(HaveOccurred())
		folder, err := os.MkdirTemp("", "e2e-kubeconfig-")
		Expect(err).NotTo(HaveOccurred())
		kubeconfigs[environment] = filepath.Join(folder, "kubeconfig")
		Expect(os.WriteFile(kubeconfigs[environment], content, 0o600)).To(Succeed())
	}
	return kubeconfigs[environment]
}

// cleanProcesses removes the built programs and the kubeconfigs.
func cleanProcesses() {
	Expect(endBuilds()).To(Succeed())
	for _, path := range kubeconfigs {
		Expect(os.RemoveAll(filepath.Dir(path))).To(Succeed())
	}
}

// record reads the record of a handler from the object, or nil if it does not exist.
func record(ctx context.Context, obj *unstructured.Unstructured, id string) func() (map[string]any, error) {
	return func() (map[string]any, error) {
		text, err := annotation(ctx, obj, "killed.example.org/"+id)()
		if err != nil || text == nil {
			return nil, err
		}
		var decoded map[string]any
		return decoded, json.Unmarshal([]byte(text.(string)), &decoded)
	}
}

var _ = Describe("An operator that is killed", func() {
	DescribeTable("does not repeat stored results",
		func(ctx context.Context, object func(ns, name string, spec map[string]any) *unstructured.Unstructured) {
			ns := namespace(ctx)
			first := process(ns, "E2E_SLOW=1h")
			obj := object(ns, "slow", map[string]any{"size": int64(1)})
			create(ctx, obj)
			Eventually(first).Should(gbytes.Say("CALL second slow retry=0"))
			Eventually(first).Should(
				gbytes.Say("WAITED second slow"), "the second handler runs longer than saving the first result takes",
			)
			Expect(record(ctx, obj, "first")()).To(
				HaveKeyWithValue("success", true), "the first result is saved while the second handler runs",
			)
			Expect(record(ctx, obj, "second")()).To(
				HaveKeyWithValue("retries", BeEquivalentTo(0)), "a running attempt is not counted yet",
			)
			merge(ctx, obj, `{"spec":{"size":2}}`)
			first.Kill().Wait()

			second := process(ns, "E2E_SLOW=0s")
			Eventually(second).Should(gbytes.Say("CALL second slow retry=0"))
			Eventually(second).Should(gbytes.Say(`CALL changed slow \[change spec.size: 1 -> 2\]`),
				"an edit that the first handler did not see follows as an update")
			Eventually(
				annotation(ctx, obj, "killed.example.org"+lastHandledSuffix),
			).Should(Equal(`{"spec":{"size":2}}` + "\n"))
			Eventually(record(ctx, obj, "first")).Should(BeNil())
			Expect(field(ctx, obj, "status", "first", "call")()).To(BeEquivalentTo(1),
				"the first result survives the kill")
			Expect(field(ctx, obj, "status", "second", "call")()).To(BeEquivalentTo(1))
			Expect(string(second.Out.Contents())).NotTo(ContainSubstring("CALL first"))
			Expect(annotation(ctx, obj, "killed.example.org/handling-configuration")()).To(BeNil())
		},
		Entry("without a status subresource", gadget),
		Entry("with a status subresource", widget),
	)

	It("loses no result if it dies between the status and the main patch", func(ctx context.Context) {
		ns := namespace(ctx)
		first := run(build(operatorFolder), []string{"E2E_DIE_IN=" + ns})
		obj := widget(ns, "between", map[string]any{"size": int64(1)})
		create(ctx, obj)
		Eventually(first).Should(gexec.Exit())
		Expect(first.ExitCode()).To(Equal(128+int(syscall.SIGKILL)),
			"the process is killed and does not exit by itself")
		Expect(field(ctx, obj, "status", "first", "call")()).To(BeEquivalentTo(1),
			"the status patch is written before the kill")
		Expect(annotation(ctx, obj, "killed.example.org"+lastHandledSuffix)()).To(BeNil(),
			"the main patch is not written before the kill")

		second := process(ns)
		Eventually(annotation(ctx, obj, "killed.example.org"+lastHandledSuffix)).ShouldNot(BeNil())
		Expect(second).To(gbytes.Say("CALL first between retry=0"), "a handler with an unsaved outcome runs again")
		for _, id := range []string{"first", "second"} {
			Expect(field(ctx, obj, "status", id, "call")()).To(BeEquivalentTo(1))
		}
	})

	It("continues counting retries after a restart", func(ctx context.Context) {
		ns := namespace(ctx)
		first := process(ns)
		obj := gadget(ns, "flaky", map[string]any{"size": int64(1)})
		obj.SetLabels(map[string]string{"flaky": "yes"})
		create(ctx, obj)
		Eventually(record(ctx, obj, "flaky")).Should(HaveKeyWithValue("retries", BeEquivalentTo(2)))
		first.Kill().Wait()

		second := process(ns)
		Eventually(second).Should(gbytes.Say("CALL flaky flaky retry=2"))
		Eventually(second).Should(gbytes.Say("CALL flaky flaky retry=3"))
		Eventually(
			annotation(ctx, obj, "killed.example.org"+lastHandledSuffix),
		).ShouldNot(BeNil(), "the handler fails permanently after 4 attempts")
		Expect(string(first.Out.Contents()) + string(second.Out.Contents())).To(Equal(
			"CALL flaky flaky retry=0\nCALL flaky flaky retry=1\nCALL flaky flaky retry=2\nCALL flaky flaky retry=3\n"))
	})

	It("saves finished results before it exits on SIGTERM", func(ctx context.Context) {
		ns := namespace(ctx)
		first := process(ns, "E2E_SLOW=1h")
		obj := gadget(ns, "terminated", map[string]any{"size": int64(1)})
		create(ctx, obj)
		Eventually(first).Should(gbytes.Say("CALL second terminated"))
		first.Terminate()
		Eventually(first).Should(gexec.Exit(0))
		Expect(record(ctx, obj, "first")()).To(HaveKeyWithValue("success", true))
		Expect(record(ctx, obj, "second")()).To(
			HaveKeyWithValue("retries", BeEquivalentTo(0)), "an interrupted attempt does not count",
		)
	})
})
