package e2e_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

// createNamespace creates a namespace of this name.
func createNamespace(ctx context.Context, name string) *corev1.Namespace {
	GinkgoHelper()
	made := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	Expect(api.Create(ctx, made)).To(Succeed())
	return made
}

// finalizeNamespace finalizes a namespace like the namespace controller, which does not run here.
func finalizeNamespace(ctx context.Context, ns *corev1.Namespace) {
	GinkgoHelper()
	Expect(api.Get(ctx, client.ObjectKeyFromObject(ns), ns)).To(Succeed())
	ns.Spec.Finalizers = nil
	Expect(api.SubResource("finalize").Update(ctx, ns)).To(Succeed())
}

var _ = Describe("Patterns of namespaces", func() {
	It("follow namespaces that appear and vanish", func(ctx context.Context) {
		prefix, seen := namespace(ctx), &calls{}
		createNamespace(ctx, prefix+"-a")
		createNamespace(ctx, prefix+"-b")
		create(ctx, gadget(prefix+"-b", "left-out", map[string]any{"size": int64(1)}))
		running := start(recorderIn(seen, prefix+"-*,!"+prefix+"-b"))
		create(ctx, gadget(prefix+"-a", "first", map[string]any{"size": int64(1)}))
		Eventually(seen.list).Should(HaveExactElements(HavePrefix("create first")))

		for _, time := range []string{"once", "twice"} {
			late := createNamespace(ctx, prefix+"-c")
			Eventually(running.logs).Should(gbytes.Say(`Namespaces appeared or vanished.*"appeared":\["` + late.Name))
			obj := gadget(late.Name, time, map[string]any{"size": int64(1)})
			create(ctx, obj)
			Eventually(seen.list).Should(ContainElement(HavePrefix("create " + time)))
			Eventually(annotation(ctx, obj, "patterns.example.org"+lastHandledSuffix)).ShouldNot(BeNil())
			Expect(api.Delete(ctx, late)).To(Succeed())
			remove(ctx, obj)
			Eventually(now(ctx, obj)).Should(BeNil(), "objects in a terminating namespace are handled")
			finalizeNamespace(ctx, late)
			Eventually(running.logs).Should(gbytes.Say(`Namespaces appeared or vanished.*"vanished":\["` + late.Name))
		}
		Expect(seen.list()).To(HaveExactElements(HavePrefix("create first"), HavePrefix("create once"),
			HavePrefix("delete once"), HavePrefix("create twice"), HavePrefix("delete twice"),
		), "objects in excluded namespaces are not handled")
	})
})

func recorderIn(seen *calls, patterns ...string) *kopf.Operator {
	op := kopf.New("patterns.example.org", kopf.Settings{Namespaces: patterns})
	note := func(_ context.Context, c *unstructuredChange) error {
		seen.add("%s %s", c.Reason, c.Object.GetName())
		return nil
	}
	gadgets := kopf.ForResource(op, "e2e.example.org/v1", "gadgets")
	gadgets.OnCreate("create", note)
	gadgets.OnDelete("delete", note)
	return op
}
