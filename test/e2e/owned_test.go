package e2e_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

// These specs need a real API server for its field managers, defaults, statuses and generations.
var _ = Describe("Watched children", func() {
	It("are reported to their owner, and restored after an edit or a deletion", func(ctx context.Context) {
		home, told := namespace(ctx), &calls{}
		op := kopf.New("owned.example.org", settingsFor(home))
		widgets := kopf.ForResource(op, "e2e.example.org/v1", "widgets")
		widgets.OnCreate("ensure", func(ctx context.Context, c *kopf.Change[*kopf.Unstructured]) error {
			return c.Ensure(ctx, newDeployment())
		})
		widgets.Owns(&appsv1.Deployment{})
		kopf.OnChild(widgets,
			"ready", func(_ context.Context, e *kopf.ChildEvent[*kopf.Unstructured, *appsv1.Deployment]) error {
				if ready := e.Child.Status.ReadyReplicas; ready > 0 {
					told.add("%s has %d of %s", e.Child.Name, ready, e.Object.GetName())
				}
				return nil
			})
		start(op)
		create(ctx, widget(home, "parent", nil))
		deployment := &appsv1.Deployment{}
		image := func() string {
			if api.Get(ctx, client.ObjectKey{Namespace: home, Name: "web"}, deployment) != nil {
				return ""
			}
			return deployment.Spec.Template.Spec.Containers[0].Image
		}
		Eventually(image).Should(Equal("web"))

		status := deployment.DeepCopy()
		status.Status.Replicas, status.Status.ReadyReplicas = 1, 1
		Expect(api.Status().Patch(ctx, status, client.MergeFrom(deployment))).To(Succeed())
		Eventually(told.list).Should(ContainElement("web has 1 of parent"))

		edited := deployment.DeepCopy()
		edited.Spec.Template.Spec.Containers[0].Image = "other"
		Expect(api.Patch(ctx, edited, client.MergeFrom(deployment))).To(Succeed())
		Eventually(image).Should(Equal("web"))

		before := deployment.UID
		Expect(api.Delete(ctx, deployment)).To(Succeed())
		Eventually(func() types.UID { _ = image(); return deployment.UID }).ShouldNot(Equal(before))
		Expect(image()).To(Equal("web"))
	})
})
