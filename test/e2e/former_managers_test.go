package e2e_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

// Only a real API server shows which managers own defaults and the scale, and which fields are immutable.
var _ = Describe("Children of a former program", func() {
	// declare starts an operator that declares the children of the widget that the spec created.
	declare := func(namespace string, children ...client.Object) *calls {
		seen := &calls{}
		op := kopf.New("former.example.org", settingsFor(namespace))
		kopf.ForResource(op, "e2e.example.org/v1", "widgets").On("ensure", kopf.CreateUpdateResume(),
			func(ctx context.Context, c *kopf.Change[*kopf.Unstructured]) error {
				err := c.Ensure(ctx, children)
				seen.add("%v", err)
				return err
			})
		start(op)
		return seen
	}
	// makeChild creates an object with an owner reference to the widget, like an operator in Python.
	makeChild := func(ctx context.Context, parent *unstructured.Unstructured, child client.Object) {
		child.SetNamespace(parent.GetNamespace())
		child.SetOwnerReferences([]metav1.OwnerReference{{
			APIVersion: "e2e.example.org/v1", Kind: "Widget", Name: parent.GetName(), UID: parent.GetUID(),
			Controller: ptr.To(true),
		}})
		ExpectWithOffset(1, api.Create(ctx, child, client.FieldOwner("kopf"))).To(Succeed())
	}
	strip := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"managedFields":[{}]}}`))
	for _, stripped := range []bool{false, true} {
		It("lose undeclared fields and keep the replicas of an autoscaler", func(ctx context.Context) {
			home := namespace(ctx)
			parent := widget(home, "parent", nil)
			create(ctx, parent)
			former := newDeployment()
			former.Labels = map[string]string{"former": "yes"}
			former.Spec.MinReadySeconds = 5
			former.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "OLD", Value: "1"}}
			makeChild(ctx, parent, former)
			scale := &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: 7}}
			Expect(api.SubResource("scale").Update(ctx, former, client.WithSubResourceBody(scale),
				client.FieldOwner("kube-controller-manager"))).To(Succeed())
			if stripped {
				Expect(api.Patch(ctx, former, strip)).To(Succeed())
			}
			Eventually(declare(home, newDeployment()).list).Should(Equal([]string{"<nil>"}))
			held := &appsv1.Deployment{}
			Expect(api.Get(ctx, client.ObjectKey{Namespace: home, Name: "web"}, held)).To(Succeed())
			Expect(held.Labels).NotTo(HaveKey("former"))
			Expect(held.Spec.MinReadySeconds).To(BeZero())
			Expect(held.Spec.Template.Spec.Containers[0].Env).To(BeEmpty())
			Expect(held.Spec.Replicas).To(HaveValue(BeEquivalentTo(7)))
			Expect(held.UID).To(Equal(former.UID))
		})
		It("keep immutable fields", func(ctx context.Context) {
			home := namespace(ctx)
			parent := widget(home, "parent", nil)
			create(ctx, parent)
			job := func(labels map[string]string) *batchv1.Job {
				return &batchv1.Job{
					ObjectMeta: metav1.ObjectMeta{Name: "job"},
					Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{
						ObjectMeta: metav1.ObjectMeta{Labels: labels},
						Spec: corev1.PodSpec{
							RestartPolicy: corev1.RestartPolicyNever,
							Containers:    []corev1.Container{{Name: "job", Image: "job"}},
						},
					}},
				}
			}
			former := job(map[string]string{"former": "yes"})
			makeChild(ctx, parent, former)
			if stripped {
				Expect(api.Patch(ctx, former, strip)).To(Succeed())
			}
			Eventually(declare(home, job(nil)).list).Should(Equal([]string{"<nil>"}))
			held := &batchv1.Job{}
			Expect(api.Get(ctx, client.ObjectKey{Namespace: home, Name: "job"}, held)).To(Succeed())
			Expect(held.Spec.Template.Labels).To(HaveKey("former"))
			Expect(held.Labels).To(HaveKey("former.example.org/parent-uid"))
		})
	}
})
