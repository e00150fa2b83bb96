package main

import (
	"context"
	"fmt"
	"os"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kopf-runtime/kopf-runtime/test/yardstick/process"
)

// setupPods indexes the pods by node and reads each of them from the cache.
func setupPods(m manager.Manager, count int) error {
	err := m.GetFieldIndexer().IndexField(context.Background(), &corev1.Pod{}, "node", func(o client.Object) []string {
		pod, ok := o.(*corev1.Pod)
		if !ok {
			return nil
		}
		return []string{pod.Spec.NodeName}
	})
	if err != nil {
		return fmt.Errorf("indexing the pods: %w", err)
	}
	var seen atomic.Int64
	return setup(m, &corev1.Pod{}, func(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
		var pod corev1.Pod
		if err := m.GetClient().Get(ctx, r.NamespacedName, &pod); err != nil {
			return reconcile.Result{}, client.IgnoreNotFound(err)
		}
		if seen.Add(1) == int64(count) {
			return reconcile.Result{}, process.WriteFigure(os.Stdout, "all", float64(count))
		}
		return reconcile.Result{}, nil
	})
}
