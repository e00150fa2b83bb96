package e2e_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

var namespaces atomic.Int32

// namespace creates a namespace for the spec.
func namespace(ctx context.Context) string {
	GinkgoHelper()
	name := fmt.Sprintf("e2e-%d", namespaces.Add(1))
	Expect(api.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})).To(Succeed())
	return name
}

// settingsFor returns the settings of an operator that serves one namespace.
func settingsFor(namespace string) kopf.Settings {
	return kopf.Settings{Namespaces: []string{namespace}}
}

// raw returns an unstructured object.
func raw(apiVersion, kind, namespace, name string, spec map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": apiVersion, "kind": kind,
		"metadata": map[string]any{"namespace": namespace, "name": name},
		"spec":     spec,
	}}
}

func widget(namespace, name string, spec map[string]any) *unstructured.Unstructured {
	return raw("e2e.example.org/v1", "Widget", namespace, name, spec)
}

func gadget(namespace, name string, spec map[string]any) *unstructured.Unstructured {
	return raw("e2e.example.org/v1", "Gadget", namespace, name, spec)
}

func create(ctx context.Context, obj *unstructured.Unstructured) {
	GinkgoHelper()
	Expect(api.Create(ctx, obj)).To(Succeed())
}

// merge patches an object, as kubectl patch --type=merge does.
func merge(ctx context.Context, obj *unstructured.Unstructured, patch string) {
	GinkgoHelper()
	Expect(api.Patch(ctx, obj.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(patch)))).To(Succeed())
}

func remove(ctx context.Context, obj *unstructured.Unstructured) {
	GinkgoHelper()
	Expect(api.Delete(ctx, obj)).To(Succeed())
}

// now reads the object from the API server; nil if it does not exist.
func now(ctx context.Context, obj *unstructured.Unstructured) func() (map[string]any, error) {
	return func() (map[string]any, error) {
		fresh := obj.DeepCopy()
		err := api.Get(ctx, client.ObjectKeyFromObject(obj), fresh)
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		return fresh.Object, err
	}
}

// field reads one field from the API server; nil if it does not exist.
func field(ctx context.Context, obj *unstructured.Unstructured, path ...string) func() (any, error) {
	return func() (any, error) {
		body, err := now(ctx, obj)()
		if err != nil || body == nil {
			return nil, err
		}
		value, _, err := unstructured.NestedFieldNoCopy(body, path...)
		return value, err
	}
}

// annotation reads one annotation from the API server; nil if it does not exist.
func annotation(ctx context.Context, obj *unstructured.Unstructured, key string) func() (any, error) {
	return field(ctx, obj, "metadata", "annotations", key)
}

// createMany creates many objects concurrently.
func createMany(ctx context.Context, objects []*unstructured.Unstructured) {
	GinkgoHelper()
	queue := make(chan *unstructured.Unstructured)
	failures := make(chan error, len(objects))
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for obj := range queue {
				if err := api.Create(ctx, obj); err != nil {
					failures <- err
				}
			}
		})
	}
	for _, obj := range objects {
		queue <- obj
	}
	close(queue)
	group.Wait()
	Expect(failures).To(BeEmpty())
}
