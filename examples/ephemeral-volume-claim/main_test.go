package main

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

func newOwner(size string) *kopf.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "kopf.dev/v1", "kind": "EphemeralVolumeClaim",
		"metadata": map[string]any{
			"namespace": "default", "name": "my-claim", "labels": map[string]any{"application": "shop"},
		},
		"spec": map[string]any{"size": size, "storageClassName": "pretended"},
	}}
}

// TestClaim calls one handler as a function.
func TestClaim(t *testing.T) {
	cluster := fake.NewClientBuilder().Build()
	got := facadetest.NewChange(newOwner("1Gi"), facadetest.Client(cluster)).Call(t.Context(), claim)
	if got.Err != nil || got.Result != "my-claim" {
		t.Fatalf("got error %v, result %v", got.Err, got.Result)
	}
	child := getClaim(t, cluster)
	size := child.Spec.Resources.Requests.Storage().String()
	if size != "1Gi" || child.Labels["application"] != "shop" {
		t.Errorf("got size %s, labels %v", size, child.Labels)
	}
}

// TestInvalidSize checks that the handler is not called again until the object changes.
func TestInvalidSize(t *testing.T) {
	got := facadetest.NewChange(newOwner("large")).Call(t.Context(), claim)
	if got.Err == nil || !got.Final {
		t.Errorf("got error %v, final %v", got.Err, got.Final)
	}
}

// TestShrinking checks that a smaller size fails permanently, and that the user gets an event.
func TestShrinking(t *testing.T) {
	cluster := facadetest.Client(fake.NewClientBuilder().Build())
	facadetest.NewChange(newOwner("2Gi"), cluster).Call(t.Context(), claim)
	owner := newOwner("1Gi")
	owner.Object["status"] = map[string]any{"claim": "my-claim"} // the result of claim
	got := facadetest.NewChange(owner, cluster).Call(t.Context(), resize)
	if got.Err == nil || !got.Final || len(got.Events) != 1 || got.Events[0].Reason != "ShrinkingRefused" {
		t.Errorf("got error %v, final %v, events %v", got.Err, got.Final, got.Events)
	}
}

// TestLifetime runs the whole operator: from the creation to a deletion that waits for a pod.
func TestLifetime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := memapi.New()
		definitions, err := memapi.Definitions("crd.yaml")
		if err != nil {
			t.Fatal(err)
		}
		if err := server.Define(definitions...); err != nil {
			t.Fatal(err)
		}
		server.CollectGarbage(time.Second)
		cluster, err := client.New(memapi.Config(server), client.Options{})
		if err != nil {
			t.Fatal(err)
		}
		r := facadetest.Start(t, newOperator(), facadetest.Against(memapi.Config(server)))
		r.Ready()
		do := func(step func(ctx context.Context) error) {
			if err := step(t.Context()); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Minute)
		}

		owner, pod := newOwner("1Gi"), newPod()
		do(func(ctx context.Context) error { return cluster.Create(ctx, owner) })
		do(func(ctx context.Context) error { return cluster.Create(ctx, pod) })
		patch := `{"spec":{"size":"2Gi"},"metadata":{"labels":{"application":null,"tier":"gold"}}}`
		do(func(ctx context.Context) error {
			return cluster.Patch(ctx, owner, client.RawPatch("application/merge-patch+json", []byte(patch)))
		})
		child := getClaim(t, cluster)
		if size := child.Spec.Resources.Requests.Storage().String(); size != "2Gi" || child.Labels["tier"] != "gold" ||
			child.Labels["application"] != "" {
			t.Errorf("got size %s, labels %v", size, child.Labels)
		}
		if phase := kopf.GetFieldOr(getOwner(t, cluster), "status.phase", ""); phase != "Bound" {
			t.Errorf("got phase %q in the status of the owner", phase)
		}

		do(func(ctx context.Context) error { return cluster.Delete(ctx, owner) })
		if getOwner(t, cluster).GetDeletionTimestamp() == nil {
			t.Error("the owner must be held while the pod uses the volume")
		}
		do(func(ctx context.Context) error { return cluster.Delete(ctx, pod) })
		for _, object := range []client.Object{owner, child} {
			err := cluster.Get(t.Context(), client.ObjectKeyFromObject(object), object)
			if !apierrors.IsNotFound(err) {
				t.Errorf("%T must be deleted, got %v", object, err)
			}
		}
	})
}

func newPod() *corev1.Pod {
	volume := corev1.Volume{Name: "data"}
	volume.PersistentVolumeClaim = &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "my-claim"}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "user"},
		Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Name: "main", Image: "busybox"}}, Volumes: []corev1.Volume{volume},
		},
	}
}

func getClaim(t testing.TB, cluster client.Client) *corev1.PersistentVolumeClaim {
	t.Helper()
	child := &corev1.PersistentVolumeClaim{}
	key := client.ObjectKey{Namespace: "default", Name: "my-claim"}
	if err := cluster.Get(t.Context(), key, child); err != nil {
		t.Fatal(err)
	}
	return child
}

func getOwner(t testing.TB, cluster client.Client) *kopf.Unstructured {
	t.Helper()
	owner := newOwner("")
	if err := cluster.Get(t.Context(), client.ObjectKeyFromObject(owner), owner); err != nil {
		t.Fatal(err)
	}
	return owner
}
