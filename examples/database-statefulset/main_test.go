package main

import (
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	v1 "github.com/kopf-runtime/kopf-runtime/examples/database-statefulset/api/v1"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

func newDatabase(version string) *v1.Database {
	return &v1.Database{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "orders"},
		Spec: v1.DatabaseSpec{
			Engine: v1.Postgres, Version: version, Size: resource.MustParse("10Gi"), BackupSchedule: "0 3 * * *",
		},
	}
}

// TestServer calls the handler of the server as a function. The test takes the place of the StatefulSet's controller.
func TestServer(t *testing.T) {
	cluster := fake.NewClientBuilder().WithStatusSubresource(&appsv1.StatefulSet{}).Build()
	c := facadetest.NewChange(
		newDatabase("17.2"), facadetest.Client(cluster), facadetest.Owns(&appsv1.StatefulSet{}),
	)
	if got := c.Call(t.Context(), server); got.Awaited != "StatefulSet.apps orders" || got.Object.Status.Version != "" {
		t.Fatalf("want it to wait for the StatefulSet, got %q, error %v", got.Awaited, got.Err)
	}
	reportReady(t, cluster)
	got := c.Call(t.Context(), server)
	if got.Err != nil || got.Object.Status.Version != "17.2" || got.Object.Status.Endpoint != "orders.default:5432" {
		t.Errorf("got error %v, status %+v", got.Err, got.Object.Status)
	}
	requireImage(t, cluster, "postgres:17.2")
}

// TestUpgradeRefused checks that a version that cannot read the data is an error until the version changes again.
func TestUpgradeRefused(t *testing.T) {
	for version, want := range map[string]bool{"17.1": false, "18.0": false, "17.10": true} {
		if err := checkUpgrade("17.2", version); (err == nil) != want {
			t.Errorf("from 17.2 to %s: got error %v", version, err)
		}
	}
	db := newDatabase("18.0")
	db.Status.Version = "17.2"
	if got := facadetest.NewChange(db).Call(t.Context(), server); got.Err == nil || !got.Final {
		t.Errorf("got error %v, final %v", got.Err, got.Final)
	}
}

// TestOperator runs the whole operator against an API server in memory: a creation, an upgrade, the end of the backups,
// a failure of the server, a refused upgrade and the deletion.
func TestOperator(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster, server := newCluster(t)
		server.CollectGarbage(time.Second)
		r := facadetest.Start(t, newOperator(), facadetest.Against(memapi.Config(server)))
		r.Ready()
		db := newDatabase("17.2")
		settle := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Minute)
		}
		merge := func(patch string) error {
			return cluster.Patch(t.Context(), db, client.RawPatch("application/merge-patch+json", []byte(patch)))
		}

		settle(cluster.Create(t.Context(), db))
		requireConditions(t, cluster, "", metav1.ConditionFalse, "") // the StatefulSet has no status yet
		reportReady(t, cluster)
		requireConditions(t, cluster, "17.2", metav1.ConditionTrue, metav1.ConditionTrue)
		requireExists(t, cluster, &batchv1.CronJob{}, "orders-backups", true)

		settle(merge(`{"spec":{"version":"17.6","backupSchedule":null}}`))
		requireExists(t, cluster, &batchv1.CronJob{}, "orders-backups", false)
		requireImage(t, cluster, "postgres:17.2") // until there is a backup
		reportBackup(t, cluster, "orders-before-17.6")
		requireImage(t, cluster, "postgres:17.6")
		reportReady(t, cluster)
		requireConditions(t, cluster, "17.6", metav1.ConditionTrue, metav1.ConditionTrue)

		reportReplicas(t, cluster, 0)
		requireConditions(t, cluster, "17.6", metav1.ConditionTrue, metav1.ConditionFalse)
		reportReady(t, cluster)
		settle(merge(`{"spec":{"version":"18.0"}}`))
		requireConditions(t, cluster, "17.6", metav1.ConditionFalse, metav1.ConditionTrue)
		requireImage(t, cluster, "postgres:17.6")

		settle(cluster.Delete(t.Context(), db))
		requireExists(t, cluster, &v1.Database{}, "orders", false)
		requireExists(t, cluster, &appsv1.StatefulSet{}, "orders", false)
		requireExists(t, cluster, &corev1.PersistentVolumeClaim{}, "orders-data", true)
	})
}

// newCluster returns an API server in memory that has the CRD, and a client of it.
func newCluster(t testing.TB) (client.Client, *memapi.Server) {
	t.Helper()
	scheme := runtime.NewScheme()
	types := runtime.SchemeBuilder{clientgoscheme.AddToScheme, v1.AddToScheme}
	definitions, err := memapi.Definitions("crd.yaml")
	if err != nil {
		t.Fatal(err)
	}
	server := memapi.New()
	server.IgnoreRules() // the memory has no CEL
	if err := server.Define(definitions...); err != nil {
		t.Fatal(err)
	}
	if err := types.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	c, err := client.New(memapi.Config(server), client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return c, server
}

func getObject[T client.Object](t testing.TB, cluster client.Client, object T, name string) T {
	t.Helper()
	if err := cluster.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: name}, object); err != nil {
		t.Fatal(err)
	}
	return object
}

func reportReady(t testing.TB, cluster client.Client) { t.Helper(); reportReplicas(t, cluster, 1) }

func reportReplicas(t testing.TB, cluster client.Client, ready int32) {
	t.Helper()
	set := getObject(t, cluster, &appsv1.StatefulSet{}, "orders")
	set.Status = appsv1.StatefulSetStatus{
		ObservedGeneration: set.Generation, Replicas: 1, UpdatedReplicas: 1, ReadyReplicas: ready,
	}
	updateStatus(t, cluster, set)
}

func reportBackup(t testing.TB, cluster client.Client, name string) {
	t.Helper()
	job := getObject(t, cluster, &batchv1.Job{}, name)
	job.Status.Succeeded = 1
	updateStatus(t, cluster, job)
}

func updateStatus(t testing.TB, cluster client.Client, object client.Object) {
	t.Helper()
	if err := cluster.Status().Update(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Second) // virtual time, in TestOperator
}

func requireImage(t testing.TB, cluster client.Client, want string) {
	t.Helper()
	set := getObject(t, cluster, &appsv1.StatefulSet{}, "orders")
	if got := set.Spec.Template.Spec.Containers[0].Image; got != want {
		t.Errorf("got image %q, want %q", got, want)
	}
}

func requireConditions(t testing.TB, cluster client.Client, version string, ready, available metav1.ConditionStatus) {
	t.Helper()
	status := getObject(t, cluster, &v1.Database{}, "orders").Status
	for kind, want := range map[string]metav1.ConditionStatus{"Ready": ready, "Available": available} {
		got := meta.FindStatusCondition(status.Conditions, kind)
		if got == nil {
			got = &metav1.Condition{}
		}
		if got.Status != want || status.Version != version {
			t.Errorf("want %s=%q of version %q, got %+v of version %q", kind, want, version, got, status.Version)
		}
	}
}

func requireExists(t testing.TB, cluster client.Client, object client.Object, name string, want bool) {
	t.Helper()
	err := cluster.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: name}, object)
	if exists := err == nil; exists != want || client.IgnoreNotFound(err) != nil {
		t.Errorf("%T %s: want exists=%v, got %v", object, name, want, err)
	}
}
