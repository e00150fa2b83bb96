package main

import (
	"context"
	"encoding/json"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1 "github.com/kopf-runtime/kopf-runtime/test/yardstick/api/v1"
)

func newExample() *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(v1.GroupVersion.WithKind("KopfExample"))
	return o
}

func (a exampleReconciler) reconcileDynamic(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	o := newExample()
	// The manager's client would read an unstructured object live, so this reads from the cache.
	if err := a.cache.Get(ctx, request.NamespacedName, o); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	base := o.DeepCopy()
	if o.GetDeletionTimestamp() != nil {
		if controllerutil.RemoveFinalizer(o, finalizer) {
			return reconcile.Result{}, a.patch(ctx, o, base)
		}
		return reconcile.Result{}, nil
	}
	spec, err := json.Marshal(o.Object["spec"])
	if err != nil {
		return reconcile.Result{}, err
	}
	last := o.GetAnnotations()[annotation]
	if last == string(spec) {
		return a.handleUnchanged()
	}
	if last == "" && controllerutil.AddFinalizer(o, finalizer) {
		return reconcile.Result{}, a.patch(ctx, o, base)
	}
	if err := a.handleDynamic(o, last == ""); err != nil {
		return reconcile.Result{}, err
	}
	annotations := o.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[annotation] = string(spec)
	o.SetAnnotations(annotations)
	return reconcile.Result{}, a.patch(ctx, o, base)
}

func (a exampleReconciler) handleDynamic(o *unstructured.Unstructured, created bool) error {
	if created {
		return unstructured.SetNestedField(o.Object, "created "+o.GetName(), "status", "create_fn", "message")
	}
	field, _, err := unstructured.NestedString(o.Object, "spec", "field")
	if err != nil {
		return err
	}
	if err := a.handleUpdate(field); err != nil {
		return err
	}
	return unstructured.SetNestedField(o.Object, field, "status", "update_fn", "seen")
}
