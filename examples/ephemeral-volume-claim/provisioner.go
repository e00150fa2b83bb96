package main

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

// A cluster for demonstrations has no storage, so that nothing would become of the claims. This plays its part, for the
// class of class.yaml only.

func isPretended(_ context.Context, child *corev1.PersistentVolumeClaim) bool {
	return ptr.Deref(child.Spec.StorageClassName, "") == "pretended"
}

// bind pretends that there is a volume, of the very size that is asked for.
func bind(ctx context.Context, c *kopf.Change[*corev1.PersistentVolumeClaim]) error {
	requested := c.Object.Spec.Resources.Requests
	log.FromContext(ctx).Info("A volume is pretended", "size", requested.Storage().String())
	c.Patch(func(child *corev1.PersistentVolumeClaim) {
		child.Status.Phase = corev1.ClaimBound
		child.Status.AccessModes = child.Spec.AccessModes
		child.Status.Capacity = corev1.ResourceList{corev1.ResourceStorage: requested[corev1.ResourceStorage]}
	})
	return nil
}
