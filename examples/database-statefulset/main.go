// Command database-statefulset runs each database as a StatefulSet with a Service, volumes, a password and backups.
package main

import (
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"

	v1 "github.com/kopf-runtime/kopf-runtime/examples/database-statefulset/api/v1"
	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

// Change is one change of one database.
type Change = kopf.Change[*v1.Database]

func main() {
	op := newOperator()
	kopf.Main(op)
}

func newOperator() *kopf.Operator {
	op := kopf.New("store.example.org", kopf.Settings{AddToScheme: runtime.SchemeBuilder{v1.AddToScheme}})
	dbs := kopf.For(op, &v1.Database{})
	dbs.Conditions() // Ready, for kubectl wait

	// Children that others edit or delete are restored at once. The handler of the server waits for two of the kinds.
	dbs.Owns(&appsv1.StatefulSet{})
	dbs.Owns(&corev1.Service{})
	dbs.Owns(&batchv1.CronJob{})
	dbs.Owns(&batchv1.Job{})

	dbs.On("surroundings", kopf.CreateUpdateResume(), ensureChildren)
	// A change of other fields does not call it.
	dbs.On("server", kopf.CreateUpdateResume(), server, kopf.InField("spec.version"))
	kopf.OnChild(dbs, "availability", availability)

	// What Ensure does with the other kinds, for the command manifests.
	op.Needs(rbacv1.PolicyRule{
		APIGroups: []string{""}, Resources: []string{"secrets", "persistentvolumeclaims"},
		Verbs: []string{"get", "create", "patch", "delete"},
	})
	return op
}
