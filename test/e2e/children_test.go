package e2e_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

// These specs need a real API server for its defaults, field managers and preconditions.
var _ = Describe("The children that a handler ensures", func() {
	It("are applied without redundant writes, pruned, and deleted with their parent in other namespaces",
		func(ctx context.Context) {
			home, abroad, seen := namespace(ctx), namespace(ctx), &calls{}
			op := kopf.New("children.example.org", settingsFor(home))
			kopf.ForResource(op, "e2e.example.org/v1", "widgets").On(
				"ensure", []kopf.Reason{kopf.ReasonCreate, kopf.ReasonUpdate},
				func(ctx context.Context, c *kopf.Change[*kopf.Unstructured]) error {
					round := kopf.GetFieldOr(c.Object, "spec.round", "")
					children := []any{newDeployment(), map[string]any{
						"apiVersion": "v1", "kind": "ConfigMap",
						"metadata": map[string]any{"name": "far", "namespace": abroad},
					}}
					if round != "last" {
						children = append(children, &corev1.Service{
							ObjectMeta: metav1.ObjectMeta{Name: "web"},
							Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}},
						})
					}
					if err := c.Ensure(ctx, children...); err != nil {
						return err
					}
					seen.add("%s", round)
					return nil
				})
			start(op)
			parent := widget(home, "parent", map[string]any{"round": "first"})
			create(ctx, parent)
			Eventually(seen.list).Should(Equal([]string{"first"}))
			deployment, service, far := &appsv1.Deployment{}, &corev1.Service{}, &corev1.ConfigMap{}
			get := func(namespace, name string, into client.Object) error {
				return api.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, into)
			}
			Expect(get(home, "web", deployment)).To(Succeed())
			Expect(get(home, "web", service)).To(Succeed())
			Expect(get(abroad, "far", far)).To(Succeed())
			Expect(deployment.OwnerReferences).To(HaveLen(1))
			Expect(far.OwnerReferences).To(BeEmpty())
			versions := []string{deployment.ResourceVersion, service.ResourceVersion, far.ResourceVersion}

			merge(ctx, parent, `{"spec":{"round":"second"}}`)
			Eventually(seen.list).Should(Equal([]string{"first", "second"}))
			Expect(get(home, "web", deployment)).To(Succeed())
			Expect(get(home, "web", service)).To(Succeed())
			Expect(get(abroad, "far", far)).To(Succeed())
			now := []string{deployment.ResourceVersion, service.ResourceVersion, far.ResourceVersion}
			Expect(now).To(Equal(versions))

			merge(ctx, parent, `{"spec":{"round":"last"}}`)
			Eventually(seen.list).Should(HaveLen(3))
			// The set of declared children is complete only after the handler has returned.
			Eventually(func() bool { return apierrors.IsNotFound(get(home, "web", service)) }).Should(BeTrue())
			Expect(get(home, "web", deployment)).To(Succeed())

			remove(ctx, parent)
			Eventually(func() bool { return apierrors.IsNotFound(get(abroad, "far", far)) }).Should(BeTrue())
			Eventually(func() bool {
				return apierrors.IsNotFound(get(home, "parent", parent))
			}).Should(BeTrue())
		})
})

// newDeployment returns a minimal deployment; the API server sets defaults for most fields.
func newDeployment() *appsv1.Deployment {
	labels := map[string]string{"app": "web"}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "web"}}},
			},
		},
	}
}
