// Command bare is the least that controller-runtime serves a kind with: the measure for what the facade adds.
package main

import (
	"context"
	"os"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func main() {
	mgr, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{})
	if err == nil {
		greeting := reconcile.AsReconciler[*corev1.ConfigMap](mgr.GetClient(), greeter{mgr.GetClient()})
		err = ctrl.NewControllerManagedBy(mgr).For(&corev1.ConfigMap{}).Complete(greeting)
	}
	if err == nil {
		err = mgr.Start(ctrl.SetupSignalHandler())
	}
	if err != nil {
		log.Log.Error(err, "The manager has failed")
		os.Exit(1)
	}
}

type greeter struct{ client.Client }

func (greeter) Reconcile(ctx context.Context, c *corev1.ConfigMap) (reconcile.Result, error) {
	log.FromContext(ctx).Info("Hello", "name", c.Name)
	return reconcile.Result{}, nil
}
