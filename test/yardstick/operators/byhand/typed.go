package main

import (
	"context"
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1 "github.com/kopf-runtime/kopf-runtime/test/yardstick/api/v1"
)

func (a exampleReconciler) reconcileTyped(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	o := &v1.KopfExample{}
	if err := a.cache.Get(ctx, request.NamespacedName, o); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	base := o.DeepCopy()
	if o.DeletionTimestamp != nil {
		if controllerutil.RemoveFinalizer(o, finalizer) {
			return reconcile.Result{}, a.patch(ctx, o, base)
		}
		return reconcile.Result{}, nil
	}
	spec, err := json.Marshal(o.Spec)
	if err != nil {
		return reconcile.Result{}, err
	}
	last := o.Annotations[annotation]
	if last == string(spec) {
		return a.handleUnchanged()
	}
	if last == "" && controllerutil.AddFinalizer(o, finalizer) {
		return reconcile.Result{}, a.patch(ctx, o, base)
	}
	if last == "" {
		o.Status.CreateFn = &v1.Created{Message: "created " + o.Name}
	} else {
		if err := a.handleUpdate(o.Spec.Field); err != nil {
			return reconcile.Result{}, err
		}
		o.Status.UpdateFn = &v1.Updated{Seen: o.Spec.Field}
	}
	metav1.SetMetaDataAnnotation(&o.ObjectMeta, annotation, string(spec))
	return reconcile.Result{}, a.patch(ctx, o, base)
}
