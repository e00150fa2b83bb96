package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

const kind = "EphemeralVolumeClaim"

// sizeOf is an error for good: nothing but a change of the object can mend it, and that is handled anew.
func sizeOf(owner kopf.Dynamic) (resource.Quantity, error) {
	text := kopf.AtOr(owner, "spec.size", "")
	size, err := resource.ParseQuantity(text)
	if err != nil {
		return size, kopf.Permanentf("spec.size is %q, which is no size: %w", text, err)
	}
	return size, nil
}

// release holds the object until no pod uses the volume. Then Kubernetes deletes the claim, as its owner is gone.
func release(ctx context.Context, c *Change) error {
	pods := &corev1.PodList{}
	if err := c.Live.List(ctx, pods, client.InNamespace(c.Object.GetNamespace())); err != nil {
		return err
	}
	name := kopf.AtOr(c.Object, "status.claim", "")
	for _, pod := range pods.Items {
		if slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool {
			return v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ClaimName == name
		}) {
			return kopf.Temporaryf(3*time.Second, "pod %s uses the volume", pod.Name)
		}
	}
	log.FromContext(ctx).Info("Released", "claim", name)
	return nil
}

func isOwned(_ context.Context, child *corev1.PersistentVolumeClaim) bool {
	owner := metav1.GetControllerOf(child)
	return owner != nil && owner.Kind == kind
}

// report goes the other way: what becomes of the claim is told in the status of its owner.
func report(ctx context.Context, e *kopf.Event[*corev1.PersistentVolumeClaim]) error {
	reference := metav1.GetControllerOf(e.Object)
	owner := &metav1.PartialObjectMetadata{
		TypeMeta: metav1.TypeMeta{APIVersion: reference.APIVersion, Kind: reference.Kind},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: e.Object.Namespace, Name: reference.Name,
		},
	}
	phase, capacity := e.Object.Status.Phase, e.Object.Status.Capacity.Storage()
	if e.Type == kopf.EventDeleted {
		phase, capacity = "Lost", &resource.Quantity{}
	}
	status := fmt.Appendf(nil, `{"status":{"phase":%q,"capacity":%q}}`, phase, capacity)
	err := e.Client.Status().Patch(ctx, owner, client.RawPatch(types.MergePatchType, status))
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	log.FromContext(ctx).Info("Reported", "owner", owner.Name, "phase", phase, "capacity", capacity.String())
	return nil
}
