// Command database runs databases on its own servers: it creates and removes servers, upgrades them step by step,
// manages their users, takes backups and watches the replicas.
package main

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	v1 "github.com/kopf-runtime/kopf-runtime/examples/database/api/v1"
	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

// The arguments of the handlers of databases.
type (
	Change = kopf.Change[*v1.Database]
	Task   = kopf.Task[*v1.Database]
)

// These intervals are short for the demonstration; real ones would be a day, an hour and a minute.
const (
	backupInterval = 10 * time.Second
	backupIdle     = 3 * time.Second
	repairInterval = 1 * time.Second
)

// retryPolicy is the policy of all handlers that send requests to the servers, which may be busy for some time.
var retryPolicy = kopf.JoinOptions(kopf.Retries(10), kopf.Backoff(2*time.Second), kopf.Timeout(10*time.Minute))

func main() {
	op := kopf.New("database.kopf.dev", kopf.Settings{
		AddToScheme: runtime.SchemeBuilder{v1.AddToScheme},
		Background:  kopf.BackgroundSettings{MaxConcurrentTicks: 5}, // backups at once
		// This is the time for steps that still run when the operator exits; deploy/deployment.yaml has the total time.
		Queueing: kopf.QueueingSettings{ExitTimeout: 20 * time.Second},
	})
	register(op, newFleet())
	kopf.Main(op)
}

func register(op *kopf.Operator, servers *fleet) {
	dbs := kopf.For(op, &v1.Database{})
	dbs.Conditions() // kubectl wait --for=condition=Ready
	// Field handlers are also called for deletions, if the field changed just before. This filter excludes deletions.
	alive := dbs.When(func(_ context.Context, db *v1.Database) bool { return db.DeletionTimestamp.IsZero() })
	hosted := dbs.When(func(_ context.Context, db *v1.Database) bool { return db.Status.Host != "" })

	p := provisioner{servers, servers}
	dbs.OnCreate("provision", p.provision)
	dbs.OnResume("attach", p.attach, retryPolicy)
	dbs.OnDelete("remove", p.remove)
	alive.OnField("resize", "spec.size", p.resize, retryPolicy, kopf.OldValue(kopf.Present))

	u := upgrader{servers, servers, servers}
	alive.OnField("upgrade", "spec.version", u.upgrade, kopf.OldValue(kopf.Present))

	a := roleManager{servers}
	alive.OnField("users", "spec.users", a.update)
	hosted.Timer("repair", repairInterval, a.repair, retryPolicy)
	dbs.On("children", kopf.CreateUpdateResume(), children, retryPolicy)

	w := replicaWatcher{servers, servers}
	hosted.Timer("backup", backupInterval, w.backUp, kopf.Idle(backupIdle), retryPolicy)
	hosted.Daemon("replication", w.watch, kopf.InField("spec.replicas"), kopf.Value(kopf.Present))
}
