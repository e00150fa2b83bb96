package e2e_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// These specs check the claims of SECURITY.md about the right to write the status.
var _ = Describe("A write to the status", func() {
	const forged = `{"metadata":{"annotations":{"forged":"yes"},"finalizers":["forged.example.org/yes"]},` +
		`"status":{"message":"x"}}`
	write := func(ctx context.Context, obj client.Object) {
		GinkgoHelper()
		Expect(api.Status().Patch(ctx, obj, client.RawPatch(types.MergePatchType, []byte(forged)))).To(Succeed())
	}

	It("changes neither annotations nor finalizers of custom resources", func(ctx context.Context) {
		obj := widget(namespace(ctx), "custom", map[string]any{})
		create(ctx, obj)
		write(ctx, obj)
		Expect(obj.Object["status"]).To(HaveKeyWithValue("message", "x"))
		Expect(obj.GetAnnotations()).To(BeEmpty())
		Expect(obj.GetFinalizers()).To(BeEmpty())
	})

	It("changes annotations and finalizers of a built-in kind", func(ctx context.Context) {
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace(ctx), Name: "built-in"},
			Spec: corev1.PodSpec{
				Containers: []corev1.Container{{Name: "c", Image: "i"}}, AutomountServiceAccountToken: ptr.To(false),
			},
		}
		Expect(api.Create(ctx, pod)).To(Succeed())
		write(ctx, pod)
		Expect(pod.Annotations).To(HaveKeyWithValue("forged", "yes"))
		Expect(pod.Finalizers).To(ContainElement("forged.example.org/yes"))
	})
})
