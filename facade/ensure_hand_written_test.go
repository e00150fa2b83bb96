package kopf_test

import (
	"context"
	"slices"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

// handWrittenReconciler is a reconciler as written with plain controller-runtime: it applies the children, deletes
// former children, and keeps the names of the children in the status.
type handWrittenReconciler struct{ client.Client }

// runByHand returns a function that runs this reconciler. It watches children of the given kinds.
func (h ensureFixture) runByHand(owned ...client.Object) func(way *memapi.Connection) (stop func() error) {
	return func(way *memapi.Connection) (stop func() error) {
		m, err := ctrl.NewManager(memapi.Config(way), ctrl.Options{
			Scheme: newScheme(h.t), Metrics: metricsserver.Options{BindAddress: "0"}, Logger: logr.Discard(),
			Client:     client.Options{Cache: &client.CacheOptions{Unstructured: true}},
			Controller: config.Controller{SkipNameValidation: ptr.To(true)},
		})
		if err != nil {
			h.t.Fatal(err)
		}
		controller := ctrl.NewControllerManagedBy(m).For(newHouse())
		for _, kind := range owned {
			controller.Owns(kind)
		}
		if err := controller.Complete(handWrittenReconciler{m.GetClient()}); err != nil {
			h.t.Fatal(err)
		}
		return startManager(h.t, m)
	}
}

func newHouse() *kopf.Unstructured {
	house := &unstructured.Unstructured{}
	house.SetGroupVersionKind(schema.GroupVersionKind{Group: "test.example.org", Version: "v1", Kind: "House"})
	return house
}

func newRoom() *kopf.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}
}

// Reconcile does not add context to errors.
func (b handWrittenReconciler) Reconcile(ctx context.Context, r ctrl.Request) (ctrl.Result, error) {
	house := newHouse()
	if err := b.Get(ctx, r.NamespacedName, house); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	var names []string
	for _, one := range rooms(house) {
		child, _ := one.(*kopf.Unstructured)
		child.SetNamespace(house.GetNamespace())
		if err := controllerutil.SetControllerReference(house, child, b.Scheme()); err != nil {
			return ctrl.Result{}, err
		}
		applied := client.ApplyConfigurationFromUnstructured(child)
		if err := b.Apply(ctx, applied, client.FieldOwner("by-hand"), client.ForceOwnership); err != nil {
			return ctrl.Result{}, err
		}
		names = append(names, child.GetName())
	}
	before := kopf.GetFieldOr(house, "status.rooms", []string(nil))
	for _, name := range before {
		if !slices.Contains(names, name) {
			gone := newRoom()
			gone.SetNamespace(house.GetNamespace())
			gone.SetName(name)
			if err := b.Delete(ctx, gone); client.IgnoreNotFound(err) != nil {
				return ctrl.Result{}, err
			}
		}
	}
	if slices.Equal(before, names) {
		return ctrl.Result{}, nil
	}
	patch := client.MergeFrom(house.DeepCopy())
	if err := kopf.SetField(house, "status.rooms", names); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, b.Status().Patch(ctx, house, patch)
}
