package e2e_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

// labelled returns a config map with a tier.
func labelled(namespace, name, tier string) *unstructured.Unstructured {
	obj := raw("v1", "ConfigMap", namespace, name, nil)
	delete(obj.Object, "spec")
	obj.SetLabels(map[string]string{"tier": tier})
	return obj
}

// These specs need a real API server for the events and the content types of a watch with a selector.
var _ = Describe("Objects with labels that all handlers demand", func() {
	relabel := func(ctx context.Context, obj *unstructured.Unstructured, tier string) {
		GinkgoHelper()
		merge(ctx, obj, `{"metadata":{"labels":{"tier":"`+tier+`"}}}`)
	}
	// course requires the events and the index keys of an operator while labels change.
	course := func(ctx context.Context, home string, told *calls, indexed func() []string) {
		GinkgoHelper()
		a, b := labelled(home, "a", "prod"), labelled(home, "b", "test")
		create(ctx, b)
		create(ctx, a)
		Eventually(told.list).Should(Equal([]string{"ADDED a"}))
		relabel(ctx, a, "test")
		Eventually(indexed).Should(BeEmpty())
		relabel(ctx, a, "prod")
		Eventually(told.list).Should(Equal([]string{"ADDED a", "MODIFIED a"}))
		Expect(indexed()).To(Equal([]string{"a"}))
		remove(ctx, a)
		Eventually(told.list).Should(Equal([]string{"ADDED a", "MODIFIED a", "DELETED a"}))
		Expect(indexed()).To(BeEmpty())
	}

	It("are the only ones reported to handlers of the Go type", func(ctx context.Context) {
		home, told := namespace(ctx), &calls{}
		op := kopf.New("labels.example.org", settingsFor(home))
		maps := kopf.For(op, &corev1.ConfigMap{}).WithLabel("tier", "prod")
		names := kopf.NewIndex(maps, "names", func(_ context.Context, m *corev1.ConfigMap) (map[string]string, error) {
			return map[string]string{m.Name: m.Name}, nil
		})
		maps.OnEvent("note", func(_ context.Context, e *kopf.WatchEvent[*corev1.ConfigMap]) error {
			told.add("%s %s", e.Type, e.Object.Name)
			return nil
		})
		<-startReady(op)
		course(ctx, home, told, keysOf(names))
	})

	It("are the only ones reported to handlers of metadata, which get only that", func(ctx context.Context) {
		home, told := namespace(ctx), &calls{}
		op := kopf.New("metadata.example.org", settingsFor(home))
		maps := kopf.For(op, &metav1.PartialObjectMetadata{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		}).WithLabel("tier", "prod")
		names := kopf.NewIndex(maps, "names", func(
			_ context.Context, m *metav1.PartialObjectMetadata,
		) (map[string]string, error) {
			return map[string]string{m.Name: m.Name}, nil
		})
		maps.OnEvent("note", func(_ context.Context, e *kopf.WatchEvent[*metav1.PartialObjectMetadata]) error {
			told.add("%s %s", e.Type, e.Object.Name)
			if e.Object.Kind != "ConfigMap" || e.Object.APIVersion != "v1" {
				told.add("%s is a %s", e.Object.Name, e.Object.GroupVersionKind())
			}
			return nil
		})
		<-startReady(op)
		course(ctx, home, told, keysOf(names))
	})
})

// startReady starts an operator and returns the channel that is closed when it is ready.
func startReady(op *kopf.Operator) <-chan struct{} {
	GinkgoHelper()
	start(op)
	return op.Ready()
}

// keysOf returns a function that lists the keys of an index.
func keysOf(index *kopf.Index[string, string]) func() []string {
	return func() (all []string) {
		for key := range index.Keys() {
			all = append(all, key)
		}
		return all
	}
}
