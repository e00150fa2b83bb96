package e2e_test

import (
	"context"
	"os"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

// These specs run the Kubernetes garbage collector on the owner references that handlers set.
var _ = Describe("The children of a deleted object", func() {
	It("follow the propagation policy of the deletion", func(ctx context.Context) {
		ns, seen := namespace(ctx), &calls{}
		start(parents(ns, seen))
		after, before, without := widget(ns, "after", nil), widget(ns, "before", nil), widget(ns, "without", nil)
		create(ctx, after)
		create(ctx, before)
		create(ctx, without)
		Eventually(seen.list).Should(ConsistOf("made after", "made before", "made without"))
		held := raw("v1", "ConfigMap", ns, "before-ensured", nil)
		merge(ctx, held, `{"metadata":{"finalizers":["e2e.example.org/hold"]}}`)
		child := func(name string) func() (map[string]any, error) {
			return now(ctx, raw("v1", "ConfigMap", ns, name, nil))
		}
		collectGarbage()

		By("deleting in the background, which also shows that the collector is synced")
		Expect(api.Delete(ctx, after, client.PropagationPolicy(metav1.DeletePropagationBackground))).To(Succeed())
		Eventually(child("after-ensured")).Should(BeNil())
		Eventually(child("after-adopted")).Should(BeNil())
		Expect(now(ctx, after)()).To(BeNil())

		By("deleting in the foreground, where the parent waits for a held child")
		Expect(api.Delete(ctx, before, client.PropagationPolicy(metav1.DeletePropagationForeground))).To(Succeed())
		Eventually(child("before-adopted")).Should(BeNil())
		Eventually(field(ctx, held, "metadata", "deletionTimestamp")).ShouldNot(BeNil())
		Eventually(field(ctx, before, "metadata", "finalizers")).Should(
			Equal([]any{metav1.FinalizerDeleteDependents}), "the operator has removed its finalizer",
		)
		merge(ctx, held, `{"metadata":{"finalizers":null}}`)
		Eventually(now(ctx, before)).Should(BeNil())
		Expect(now(ctx, held)()).To(BeNil())

		By("deleting the parent and keeping the children")
		Expect(api.Delete(ctx, without, client.PropagationPolicy(metav1.DeletePropagationOrphan))).To(Succeed())
		Eventually(now(ctx, without)).Should(BeNil())
		for _, name := range []string{"without-ensured", "without-adopted"} {
			left, err := child(name)()
			Expect(err).NotTo(HaveOccurred())
			Expect(left["metadata"]).NotTo(HaveKey("ownerReferences"), name)
		}
		Expect(seen.list()[3:]).To(Equal([]string{"left after", "left before", "left without"}),
			"each delete handler runs once")
	})
})

// parents returns an operator whose objects have one adopted and one ensured child each.
func parents(ns string, seen *calls) *kopf.Operator {
	op := kopf.New("parents.example.org", settingsFor(ns))
	widgets := kopf.ForResource(op, "e2e.example.org/v1", "widgets")
	widgets.OnCreate("make", func(ctx context.Context, c *kopf.Change[*kopf.Unstructured]) error {
		adopted, ensured := &corev1.ConfigMap{}, &corev1.ConfigMap{}
		adopted.Name, ensured.Name = c.Object.GetName()+"-adopted", c.Object.GetName()+"-ensured"
		if err := c.Adopt(adopted); err != nil {
			return err
		}
		if err := c.Client.Create(ctx, adopted); client.IgnoreAlreadyExists(err) != nil {
			return err
		}
		if err := c.Ensure(ctx, ensured); err != nil {
			return err
		}
		seen.add("made %s", c.Object.GetName())
		return nil
	})
	widgets.OnDelete("leave", func(_ context.Context, c *kopf.Change[*kopf.Unstructured]) error {
		seen.add("left %s", c.Object.GetName())
		return nil
	})
	return op
}

// collectGarbage runs only the garbage collector of Kubernetes until the spec ends. It also deletes objects of other
// specs whose owners do not exist.
func collectGarbage() {
	GinkgoHelper()
	program := filepath.Join(os.Getenv("KUBEBUILDER_ASSETS"), "kube-controller-manager")
	if !exists(program) {
		Skip("there is no kube-controller-manager; `make test-envtest` builds it")
	}
	run(program, nil, "--kubeconfig="+kubeconfigPath(), "--controllers=garbage-collector-controller",
		"--leader-elect=false", "--secure-port=0")
}
