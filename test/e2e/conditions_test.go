package e2e_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

// These specs need a real API server for its schemas, its list maps, and kubectl wait.
var _ = Describe("The conditions of objects", func() {
	It("satisfy kubectl wait, and are not written to kinds whose schema lacks conditions",
		func(ctx context.Context) {
			ns := namespace(ctx)
			op := kopf.New("conditions.example.org", settingsFor(ns))
			for _, plural := range []string{"gizmos", "gadgets", "sprockets"} {
				things := kopf.ForResource(op, "e2e.example.org/v1", plural)
				things.Conditions()
				things.On("handle", kopf.CreateUpdateResume(), func(
					_ context.Context, c *kopf.Change[*kopf.Unstructured],
				) error {
					if c.Reason == kopf.ReasonCreate && c.Retry == 0 {
						return kopf.Temporary(errors.New("in a moment"), 100*time.Millisecond)
					}
					if plural == "gizmos" {
						c.Condition("Handled", "True", "Called", "by us")
					}
					return nil
				})
			}
			running := start(op)
			gizmo := raw("e2e.example.org/v1", "Gizmo", ns, "gizmo", map[string]any{"size": int64(1)})
			gadget := gadget(ns, "gadget", map[string]any{"size": int64(1)})
			sprocket := raw("e2e.example.org/v1", "Sprocket", ns, "sprocket", map[string]any{"size": int64(1)})
			create(ctx, gizmo)
			create(ctx, gadget)
			create(ctx, sprocket)
			awaitCurrent(ctx, gizmo, "condition=Ready")
			Expect(field(ctx, gizmo, "status", "observedGeneration")()).To(BeEquivalentTo(1))
			Expect(running.requests.of("gizmo")).To(Equal([]string{"PATCH status", "PATCH", "PATCH status", "PATCH"}))
			merge(ctx, gizmo, `{"spec":{"size":2}}`)
			awaitCurrent(ctx, gizmo, "condition=Ready") // of the new generation: kubectl compares them
			awaitCurrent(ctx, gizmo, "condition=Handled")
			Expect(field(ctx, gizmo, "status", "observedGeneration")()).To(BeEquivalentTo(2))
			Expect(field(ctx, gizmo, "status", "conditions")()).To(HaveLen(2))

			for _, other := range []string{"gadget", "sprocket"} {
				Eventually(func() []string { return running.requests.of(other) }).
					Should(Equal([]string{"PATCH", "PATCH"}))
			}
			Expect(field(ctx, gadget, "metadata", "generation")()).To(BeEquivalentTo(1))
			Expect(field(ctx, gadget, "status")()).To(BeNil())
			Expect(field(ctx, sprocket, "status")()).To(BeNil())
			logged := string(running.logs.Contents())
			Expect(strings.Count(logged, "Cannot write conditions to the status of a kind")).To(Equal(2), logged)
			Expect(logged).To(ContainSubstring("version v1 of the CRD gadgets.e2e.example.org"))
			Expect(logged).To(ContainSubstring("the schema has no status.conditions"))
		})
})

// awaitCurrent runs kubectl wait for the object and requires that the result belongs to the present generation.
func awaitCurrent(ctx context.Context, obj *unstructured.Unstructured, what string) {
	GinkgoHelper()
	kind := strings.ToLower(obj.GetKind()) + "." + obj.GroupVersionKind().Group
	wait := exec.CommandContext(ctx, filepath.Join(os.Getenv("KUBEBUILDER_ASSETS"), "kubectl"), "wait",
		"--kubeconfig", kubeconfigPath(), "-n", obj.GetNamespace(), kind+"/"+obj.GetName(), "--for="+what,
		"--timeout="+waitTimeout.String())
	out, err := wait.CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), string(out))
	found := obj.DeepCopy()
	Expect(api.Get(ctx, client.ObjectKeyFromObject(obj), found)).To(Succeed())
	observed, _, _ := unstructured.NestedInt64(found.Object, "status", "observedGeneration")
	Expect(observed).To(Equal(found.GetGeneration()), what)
}
