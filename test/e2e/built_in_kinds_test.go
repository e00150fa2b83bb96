package e2e_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

// The in-memory API server does not support protobuf, so these specs need a real one.
var _ = Describe("A built-in kind", func() {
	of := func(ns, name string, labels map[string]string) *corev1.ConfigMap {
		return &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name, Labels: labels}, Data: map[string]string{"a": "1"},
		}
	}
	see := func(seen *calls) kopf.WatchEventFunc[*corev1.ConfigMap] {
		return func(_ context.Context, e *kopf.WatchEvent[*corev1.ConfigMap]) error {
			o := e.Object
			seen.add("%s %s %s: %s, labels %v", e.Type, o.Kind, o.Name, o.Data["a"], o.Labels)
			return nil
		}
	}

	It("is watched as protobuf with the same content as in JSON", func(ctx context.Context) {
		ns, seen := namespace(ctx), &calls{}
		op := kopf.New("messages.example.org", settingsFor(ns))
		maps := kopf.For(op, &corev1.ConfigMap{}).MatchingLabels("mine")
		byValue := kopf.NewIndex(maps, "by-value",
			func(_ context.Context, o *corev1.ConfigMap) (map[string]string, error) {
				return map[string]string{o.Data["a"]: o.Name}, nil
			})
		maps.OnEvent("see", see(seen))
		maps.When(func(_ context.Context, o *corev1.ConfigMap) bool { return o.Data["a"] == "2" }).OnEvent("patch",
			func(_ context.Context, e *kopf.WatchEvent[*corev1.ConfigMap]) error {
				e.Patch(func(o *corev1.ConfigMap) { o.Data["b"] = "patched" })
				return nil
			})
		Expect(api.Create(ctx, of(ns, "listed", map[string]string{"mine": "yes"}))).To(Succeed())
		running := start(op)
		Eventually(seen.list).Should(HaveLen(1))
		Expect(running.requests.formOf("configmaps")).To(ContainSubstring("application/vnd.kubernetes.protobuf"))

		Expect(api.Create(ctx, of(ns, "stranger", nil))).To(Succeed())
		added := of(ns, "added", map[string]string{"mine": "yes"})
		Expect(api.Create(ctx, added)).To(Succeed())
		Eventually(seen.list).Should(HaveLen(2))
		Expect(byValue.Get("1")).To(ConsistOf("listed", "added"))

		added.Data["a"] = "2"
		Expect(api.Update(ctx, added)).To(Succeed())
		Eventually(func() map[string]string {
			_ = api.Get(ctx, client.ObjectKeyFromObject(added), added)
			return added.Data
		}).Should(Equal(map[string]string{"a": "2", "b": "patched"}), "the patch changes only its own field")
		Expect(api.Delete(ctx, added)).To(Succeed())
		Eventually(seen.list).Should(ContainElement("DELETED ConfigMap added: 2, labels map[mine:yes]"))
		Expect(seen.list()[:3]).To(Equal([]string{
			" ConfigMap listed: 1, labels map[mine:yes]", "ADDED ConfigMap added: 1, labels map[mine:yes]",
			"MODIFIED ConfigMap added: 2, labels map[mine:yes]",
		}))
		Expect(seen.list()).NotTo(ContainElement(ContainSubstring("stranger")))
		Expect(byValue.Get("2")).To(BeEmpty())
	})

	It("is watched as JSON if a handler stores progress", func(ctx context.Context) {
		ns, seen := namespace(ctx), &calls{}
		op := kopf.New("texts.example.org", settingsFor(ns))
		maps := kopf.For(op, &corev1.ConfigMap{})
		maps.OnEvent("see", see(seen))
		maps.OnCreate("create", func(context.Context, *kopf.Change[*corev1.ConfigMap]) error { return nil })
		Expect(api.Create(ctx, of(ns, "listed", nil))).To(Succeed())
		running := start(op)
		Eventually(seen.list).Should(ContainElement(" ConfigMap listed: 1, labels map[]"))
		Expect(running.requests.formOf("configmaps")).To(Equal("application/json"))
	})
})
