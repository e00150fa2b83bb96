package devcluster_test

import (
	"context"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/devcluster"
)

const ruledDefinition = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: volumes.example.org}
spec:
  group: example.org
  scope: Namespaced
  names: {kind: Volume, listKind: VolumeList, plural: volumes, singular: volume}
  versions:
    - name: v1
      served: true
      storage: true
      schema:
        openAPIV3Schema:
          type: object
          properties:
            spec:
              type: object
              x-kubernetes-validations:
                - {rule: "self.size >= oldSelf.size", message: volumes do not shrink}
                - {rule: "self.size <= self.most", message: too large}
              properties: {size: {type: integer}, most: {type: integer, default: 10}}
`

// serveVolumes starts a cluster with a definition of volumes, and returns the clients for definitions and volumes.
func serveVolumes(t *testing.T, definition string) (definitions, volumes dynamic.ResourceInterface) {
	t.Helper()
	cluster, _ := startCluster(t, devcluster.Options{})
	client := dynamicClient(t, cluster)
	if err := define(t, client, definition); err != nil {
		t.Fatal(err)
	}
	definitions = client.Resource(apiextensionsv1.SchemeGroupVersion.WithResource("customresourcedefinitions"))
	volumes = client.Resource(schema.GroupVersionResource{Group: "example.org", Version: "v1", Resource: "volumes"}).
		Namespace("default")
	return definitions, volumes
}

func TestRulesInCEL(t *testing.T) {
	t.Parallel()
	_, volumes := serveVolumes(t, ruledDefinition)
	volume := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.org/v1", "kind": "Volume", "metadata": map[string]any{"name": "a"},
		"spec": map[string]any{"size": int64(50)},
	}}
	if _, err := volumes.Create(t.Context(), volume, metav1.CreateOptions{}); err == nil ||
		!strings.Contains(err.Error(), "too large") {
		t.Errorf("a new object that breaks a rule must be refused: got %v", err)
	}
	_ = unstructured.SetNestedField(volume.Object, int64(5), "spec", "size")
	made, err := volumes.Create(t.Context(), volume, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_ = unstructured.SetNestedField(made.Object, int64(4), "spec", "size")
	if _, err := volumes.Update(t.Context(), made, metav1.UpdateOptions{}); err == nil ||
		!strings.Contains(err.Error(), "volumes do not shrink") {
		t.Errorf("a change that breaks a transition rule must be refused: got %v", err)
	}
	_ = unstructured.SetNestedField(made.Object, int64(6), "spec", "size")
	if _, err := volumes.Update(t.Context(), made, metav1.UpdateOptions{}); err != nil {
		t.Errorf("a valid change must be accepted: %v", err)
	}
}

// TestNewRulesForOldObjects shows that a rule that is newer than an object only applies to fields that change.
func TestNewRulesForOldObjects(t *testing.T) {
	t.Parallel()
	former := strings.ReplaceAll(ruledDefinition, "type: integer, default: 10", "type: integer")
	definitions, volumes := serveVolumes(t, former)
	volume, err := volumes.Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.org/v1", "kind": "Volume", "metadata": map[string]any{"name": "a"},
		"spec": map[string]any{"size": int64(5), "most": int64(10)},
	}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	newer := strings.ReplaceAll(former, "most: {type: integer}",
		`most: {type: integer, x-kubernetes-validations: [{rule: "self < 8", message: no volume has more than 7}]}`)
	stored, err := definitions.Get(t.Context(), "volumes.example.org", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	crd := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(newer), &crd.Object); err != nil {
		t.Fatal(err)
	}
	crd.SetResourceVersion(stored.GetResourceVersion())
	if _, err := definitions.Update(t.Context(), crd, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	_ = unstructured.SetNestedField(volume.Object, int64(6), "spec", "size")
	if volume, err = volumes.Update(t.Context(), volume, metav1.UpdateOptions{}); err != nil {
		t.Fatalf("an unchanged field that breaks a newer rule must be accepted: got %v", err)
	}
	_ = unstructured.SetNestedField(volume.Object, int64(9), "spec", "most")
	if _, err = volumes.Update(t.Context(), volume, metav1.UpdateOptions{}); err == nil ||
		!strings.Contains(err.Error(), "no volume has more than 7") {
		t.Errorf("a changed field that breaks a newer rule must be refused: got %v", err)
	}
}

// TestDeletedDefinition shows that a deleted definition waits until its objects are gone, with their finalizers and
// events.
func TestDeletedDefinition(t *testing.T) {
	t.Parallel()
	definitions, volumes := serveVolumes(t, ruledDefinition)
	volume, err := volumes.Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.org/v1", "kind": "Volume",
		"metadata": map[string]any{"name": "a", "finalizers": []any{"example.org/volume"}},
		"spec":     map[string]any{"size": int64(5)},
	}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	events, err := volumes.Watch(t.Context(), metav1.ListOptions{ResourceVersion: volume.GetResourceVersion()})
	if err != nil {
		t.Fatal(err)
	}
	defer events.Stop()
	if err := definitions.Delete(t.Context(), "volumes.example.org", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	first := <-events.ResultChan()
	deleted, ok := first.Object.(*unstructured.Unstructured)
	if first.Type != watch.Modified || !ok || deleted.GetDeletionTimestamp() == nil {
		t.Fatalf("got %s of %v, want an object with a deletion timestamp", first.Type, first.Object)
	}
	if _, err := definitions.Get(t.Context(), "volumes.example.org", metav1.GetOptions{}); err != nil {
		t.Errorf("the definition must wait for the finalizer of its object: got %v", err)
	}
	deleted.SetFinalizers(nil)
	if _, err := volumes.Update(t.Context(), deleted, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if last := <-events.ResultChan(); last.Type != watch.Deleted {
		t.Errorf("got the event %s, want DELETED after the finalizer is removed", last.Type)
	}
	err = wait.PollUntilContextCancel(t.Context(), 20*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		_, err := definitions.Get(ctx, "volumes.example.org", metav1.GetOptions{})
		return apierrors.IsNotFound(err), nil
	})
	if err != nil {
		t.Errorf("the definition must be gone after its objects: %v", err)
	}
}
