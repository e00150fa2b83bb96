package main

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

// A cluster for demonstrations has no storage. This file takes its place for the class in class.yaml.

func isPretended(_ context.Context, child *corev1.PersistentVolumeClaim) bool {
	return ptr.Deref(child.Spec.StorageClassName, "") == "pretended"
}

// bind reports a volume of the requested size.
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
