package main

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"

	v1 "github.com/kopf-runtime/kopf-runtime/examples/database/api/v1"
	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

// replicaWatcher has the timer and the daemon of a database.
type replicaWatcher struct {
	archive     archive
	replication replication
}

// backUp takes a backup when the database has not changed for a while.
func (w replicaWatcher) backUp(ctx context.Context, r *Task) error {
	return takeBackup(ctx, r, w.archive)
}

// backUp returns a sub-handler that takes a backup.
func backUp(a archive) kopf.ChangeFunc[*v1.Database] {
	return func(ctx context.Context, c *Change) error { return takeBackup(ctx, c, a) }
}

// takeBackup takes a backup in a timer or in a sub-handler.
func takeBackup(ctx context.Context, h call, a archive) error {
	backup, err := a.Backup(ctx, nameOf(h))
	if err != nil {
		return err
	}
	log.FromContext(ctx).Info("Took a backup", "backup", backup)
	h.Patch(func(db *v1.Database) { db.Status.LastBackup = backup })
	return nil
}

// watch checks the replicas until the database is deleted, and reports when they fall behind and catch up.
func (w replicaWatcher) watch(ctx context.Context, r *Task) error {
	every := time.NewTicker(time.Second)
	defer every.Stop()
	var before time.Duration
	for {
		select {
		case <-r.Stopping():
			log.FromContext(ctx).Info("Stopped watching the replicas", "why", r.StopReason())
			return nil
		case <-every.C:
		}
		lag, err := w.replication.Lag(ctx, nameOf(r))
		if err != nil {
			return err
		}
		if (lag > 0) != (before > 0) {
			log.FromContext(ctx).Info("The replicas fall behind or catch up", "lag", lag)
			setInSyncCondition(r, lag)
			if err := r.Flush(ctx); err != nil {
				return err
			}
		}
		before = lag
	}
}

// setInSyncCondition sets a separate condition, because daemons and timers do not affect the condition Ready.
func setInSyncCondition(r *Task, lag time.Duration) {
	if lag > 0 {
		r.Condition("InSync", metav1.ConditionFalse, "Behind", "the replicas are behind by "+lag.String())
		return
	}
	r.Condition("InSync", metav1.ConditionTrue, "CaughtUp", "")
}
