package clients_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	coreapply "k8s.io/client-go/applyconfigurations/core/v1"
	metaapply "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/yaml"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/devcluster"
)

var databaseKind = schema.GroupVersionKind{Group: "clients.example.org", Version: "v1", Kind: "Database"}

func newDatabase(namespace, name string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(databaseKind)
	object.SetNamespace(namespace)
	object.SetName(name)
	return object
}

// define creates the definition of testdata/crd.yaml for the duration of the test.
func define(t *testing.T, api client.Client) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "crd.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	definition := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict(data, definition); err != nil {
		t.Fatal(err)
	}
	if err := api.Create(t.Context(), definition); err != nil {
		t.Fatal(err)
	}
	key := client.ObjectKeyFromObject(definition)
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		if err := api.Delete(ctx, definition); err != nil {
			t.Error(err)
		}
	})
	until(t, "the definition to be established", func(ctx context.Context) error {
		if err := api.Get(ctx, key, definition); err != nil {
			return err
		}
		for _, one := range definition.Status.Conditions {
			if one.Type == apiextensionsv1.Established && one.Status == apiextensionsv1.ConditionTrue {
				return nil
			}
		}
		return fmt.Errorf("the conditions are %v", definition.Status.Conditions)
	})
}

// settingsReconciler applies a ConfigMap for each Database, and reports it in the status and in an event.
type settingsReconciler struct {
	client.Client
	events events.EventRecorder
}

func (r settingsReconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	database := newDatabase("", "")
	if err := r.Get(ctx, request.NamespacedName, database); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	engine, _, _ := unstructured.NestedString(database.Object, "spec", "engine")
	settings := coreapply.ConfigMap(database.GetName(), database.GetNamespace()).
		WithData(map[string]string{"engine": engine}).
		WithOwnerReferences(metaapply.OwnerReference().WithAPIVersion(database.GetAPIVersion()).
			WithKind(database.GetKind()).WithName(database.GetName()).WithUID(database.GetUID()).WithController(true))
	if err := r.Apply(ctx, settings, client.FieldOwner("clients"), client.ForceOwnership); err != nil {
		return ctrl.Result{}, err
	}
	if phase, _, _ := unstructured.NestedString(database.Object, "status", "phase"); phase == engine {
		return ctrl.Result{}, nil
	}
	before := database.DeepCopy()
	if err := unstructured.SetNestedField(database.Object, engine, "status", "phase"); err != nil {
		return ctrl.Result{}, err
	}
	r.events.Eventf(database, nil, corev1.EventTypeNormal, "Configured", "Configure", "the engine is %s", engine)
	return ctrl.Result{}, r.Status().Patch(ctx, database, client.MergeFrom(before))
}

// startManager runs a manager with leader election. Its end releases the lease.
func startManager(t *testing.T, to *rest.Config, scheme *runtime.Scheme, namespace string) (ctrl.Manager, func()) {
	t.Helper()
	yes := true
	manager, err := ctrl.NewManager(to, ctrl.Options{
		Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"},
		LeaderElection: true, LeaderElectionID: "clients", LeaderElectionNamespace: namespace,
		LeaderElectionReleaseOnCancel: true,
		Cache:                         cache.Options{DefaultNamespaces: map[string]cache.Config{namespace: {}}},
		Controller:                    config.Controller{SkipNameValidation: &yes},
	})
	if err != nil {
		t.Fatal(err)
	}
	err = ctrl.NewControllerManagedBy(manager).For(newDatabase("", "")).Owns(&corev1.ConfigMap{}).
		Complete(settingsReconciler{manager.GetClient(), manager.GetEventRecorder("clients")})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- manager.Start(ctx) }()
	stopped := false
	stop := func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(stop)
	return manager, stop
}

func TestControllerRuntime(t *testing.T) {
	onBoth(t, devcluster.Options{}, func(t *testing.T, c cluster) {
		scheme := runtime.NewScheme()
		if err := errors.Join(clientgoscheme.AddToScheme(scheme), apiextensionsv1.AddToScheme(scheme)); err != nil {
			t.Fatal(err)
		}
		api, err := client.New(c.config, client.Options{Scheme: scheme})
		if err != nil {
			t.Fatal(err)
		}
		define(t, api)
		namespace := newNamespace(t, kubernetes.NewForConfigOrDie(c.config))
		first, stop := startManager(t, c.config, scheme, namespace)
		<-first.Elected()
		second, _ := startManager(t, c.config, scheme, namespace)
		database := newDatabase(namespace, "main")
		database.Object["spec"] = map[string]any{"engine": "mysql", "replicas": int64(1)}
		if err := api.Create(t.Context(), database); err != nil {
			t.Fatal(err)
		}
		checkReconciled(t, api, database, "mysql")
		checkEvent(t, api, database)
		checkScaled(t, api, database)
		select {
		case <-second.Elected():
			t.Error("the second manager must not lead while the first one does")
		default:
		}
		stop()
		<-second.Elected()
		before := database.DeepCopy()
		database.Object["spec"] = map[string]any{"engine": "postgres", "replicas": int64(2)}
		if err := api.Patch(t.Context(), database, client.MergeFrom(before)); err != nil {
			t.Fatal(err)
		}
		checkReconciled(t, api, database, "postgres")
		// The manager restores a deleted child.
		settings := &corev1.ConfigMap{}
		settings.Namespace, settings.Name = namespace, "main"
		if err := api.Delete(t.Context(), settings); err != nil {
			t.Fatal(err)
		}
		checkReconciled(t, api, database, "postgres")
	})
}

// checkReconciled waits for the status and the ConfigMap of a Database.
func checkReconciled(t *testing.T, api client.Client, database *unstructured.Unstructured, engine string) {
	t.Helper()
	key := client.ObjectKeyFromObject(database)
	until(t, "the reconciled Database", func(ctx context.Context) error {
		settings := &corev1.ConfigMap{}
		if err := errors.Join(api.Get(ctx, key, database), api.Get(ctx, key, settings)); err != nil {
			return err
		}
		phase, _, _ := unstructured.NestedString(database.Object, "status", "phase")
		if phase != engine || settings.Data["engine"] != engine {
			return fmt.Errorf("the phase is %q and the settings are %v, want %s", phase, settings.Data, engine)
		}
		return nil
	})
}

func checkEvent(t *testing.T, api client.Client, database *unstructured.Unstructured) {
	t.Helper()
	until(t, "the event", func(ctx context.Context) error {
		all := &eventsv1.EventList{}
		if err := api.List(ctx, all, client.InNamespace(database.GetNamespace())); err != nil {
			return err
		}
		for _, one := range all.Items {
			ours := one.Regarding.UID == database.GetUID()
			if ours && one.Reason == "Configured" && one.Note == "the engine is mysql" {
				return nil
			}
		}
		return fmt.Errorf("the events are %v", all.Items)
	})
}

func checkScaled(t *testing.T, api client.Client, database *unstructured.Unstructured) {
	t.Helper()
	scale := &unstructured.Unstructured{}
	scale.SetGroupVersionKind(autoscalingv1.SchemeGroupVersion.WithKind("Scale"))
	if err := api.SubResource("scale").Get(t.Context(), database, scale); err != nil {
		t.Fatal(err)
	}
	if replicas, _, _ := unstructured.NestedInt64(scale.Object, "spec", "replicas"); replicas != 1 {
		t.Fatalf("the scale has %d replicas, want 1", replicas)
	}
	setField(t, scale, int64(2), "spec", "replicas")
	if err := api.SubResource("scale").Update(t.Context(), database, client.WithSubResourceBody(scale)); err != nil {
		t.Fatal(err)
	}
	setField(t, scale, int64(-1), "spec", "replicas")
	err := api.SubResource("scale").Update(t.Context(), database, client.WithSubResourceBody(scale))
	if !apierrors.IsInvalid(err) {
		t.Errorf("a negative scale must be invalid, got %v", err)
	}
	if err := api.Get(t.Context(), client.ObjectKeyFromObject(database), database); err != nil {
		t.Fatal(err)
	}
	if replicas, _, _ := unstructured.NestedInt64(database.Object, "spec", "replicas"); replicas != 2 {
		t.Errorf("the scaled Database has %d replicas, want 2", replicas)
	}
}
