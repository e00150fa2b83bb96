package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

// sizeOf returns a permanent error for an invalid size: the user must edit the object, which is another change.
func sizeOf(owner *kopf.Unstructured) (resource.Quantity, error) {
	text := kopf.GetFieldOr(owner, "spec.size", "")
	size, err := resource.ParseQuantity(text)
	if err != nil {
		return size, kopf.Permanent(fmt.Errorf("spec.size %q is not a quantity: %w", text, err))
	}
	return size, nil
}

// release holds the object while a pod uses the volume. Then Kubernetes deletes the claim by its owner reference.
func release(ctx context.Context, c *Change) error {
	pods := &corev1.PodList{}
	if err := c.APIReader.List(ctx, pods, client.InNamespace(c.Object.GetNamespace())); err != nil {
		return err
	}
	name := kopf.GetFieldOr(c.Object, "status.claim", "")
	for _, pod := range pods.Items {
		if slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool {
			return v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ClaimName == name
		}) {
			return kopf.Temporary(fmt.Errorf("pod %s uses the volume", pod.Name), 3*time.Second)
		}
	}
	log.FromContext(ctx).Info("Released", "claim", name)
	return nil
}

// report copies phase and capacity of the claim to the status of its owner.
func report(ctx context.Context, e *kopf.ChildEvent[*kopf.Unstructured, *corev1.PersistentVolumeClaim]) error {
	phase, capacity := string(e.Child.Status.Phase), e.Child.Status.Capacity.Storage().String()
	if e.Type == kopf.WatchEventDeleted {
		phase, capacity = "Lost", "0"
	}
	if kopf.GetFieldOr(e.Object, "status.phase", "") == phase &&
		kopf.GetFieldOr(e.Object, "status.capacity", "") == capacity {
		return nil
	}
	log.FromContext(ctx).Info("Reported", "phase", phase, "capacity", capacity)
	e.TryPatch(func(owner *kopf.Unstructured) error {
		return errors.Join(
			kopf.SetField(owner, "status.phase", phase), kopf.SetField(owner, "status.capacity", capacity),
		)
	})
	return nil
}
