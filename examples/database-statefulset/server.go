package main

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/version"
	"sigs.k8s.io/controller-runtime/pkg/log"

	v1 "github.com/kopf-runtime/kopf-runtime/examples/database-statefulset/api/v1"
	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

const (
	backupTime  = time.Hour        // for the backup before an upgrade
	rolloutTime = 10 * time.Minute // for the start of the server
)

// server declares the StatefulSet, and ends when its Pod is ready. While it waits, it is called again from its start.
func server(ctx context.Context, c *Change) error {
	db, from := c.Object, c.Object.Status.Version
	if from != "" && from != db.Spec.Version {
		if err := prepareUpgrade(ctx, c, from); err != nil {
			return err
		}
	}
	set := statefulSet(db)
	if err := c.Ensure(ctx, set); err != nil {
		return err
	}
	if err := kopf.WaitFor(c, set, isRolledOut, rolloutTime); err != nil {
		return err
	}
	reached, endpoint := db.Spec.Version, fmt.Sprintf("%s.%s:%d", db.Name, db.Namespace, engineOf(db).port)
	c.Patch(func(db *v1.Database) { db.Status.Version, db.Status.Endpoint = reached, endpoint })
	log.FromContext(ctx).Info("The server is ready", "version", reached, "before", from)
	return nil
}

// prepareUpgrade ends when there is a backup of the present version.
func prepareUpgrade(ctx context.Context, c *Change, from string) error {
	if err := checkUpgrade(from, c.Object.Spec.Version); err != nil {
		return kopf.Permanent(err) // until the version changes again
	}
	backup := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: c.Object.Name + "-before-" + c.Object.Spec.Version},
		Spec:       backupJob(c.Object),
	}
	if err := c.Ensure(ctx, kopf.UntilDone(backup)); err != nil {
		return err
	}
	return kopf.WaitFor(c, backup, func(j *batchv1.Job) bool { return j.Status.Succeeded > 0 }, backupTime)
}

// checkUpgrade returns an error if a server of the new version cannot read the data.
func checkUpgrade(from, to string) error {
	before, err := version.ParseGeneric(from)
	if err != nil {
		return err
	}
	after, err := version.ParseGeneric(to)
	if err != nil {
		return err
	}
	if after.Major() != before.Major() || after.LessThan(before) {
		return fmt.Errorf("version %s cannot read the data of %s: restore a backup in another database", to, from)
	}
	return nil
}

func isRolledOut(set *appsv1.StatefulSet) bool {
	return set.Status.ObservedGeneration >= set.Generation && set.Status.UpdatedReplicas > 0 &&
		set.Status.ReadyReplicas > 0
}

// availability reports the state of the server, also when it stops long after the last change of the database.
func availability(_ context.Context, e *kopf.ChildEvent[*v1.Database, *appsv1.StatefulSet]) error {
	if e.Type == kopf.WatchEventDeleted || e.Child.Status.ReadyReplicas == 0 {
		e.Condition("Available", metav1.ConditionFalse, "NotReady", "the Pod of the server is not ready")
		return nil
	}
	e.Condition("Available", metav1.ConditionTrue, "Ready", "")
	return nil
}

// statefulSet is the server. Its Pod mounts the claim of the database, so that the size can change later: the claim
// templates of a StatefulSet cannot.
func statefulSet(db *v1.Database) *appsv1.StatefulSet {
	engine, labels, one := engineOf(db), map[string]string{"database": db.Name}, int32(1)
	container := corev1.Container{
		Name: "server", Image: image(db), Env: []corev1.EnvVar{passwordFrom(db, engine.passwordVariable)},
		Ports:        []corev1.ContainerPort{{Name: "sql", ContainerPort: engine.port}},
		VolumeMounts: []corev1.VolumeMount{{Name: "data", MountPath: engine.folder, SubPath: "data"}},
		ReadinessProbe: &corev1.Probe{
			ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: engine.probe}},
		},
	}
	return &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: db.Name},
		Spec: appsv1.StatefulSetSpec{
			Replicas: &one, ServiceName: db.Name, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					Containers: []corev1.Container{container},
					Volumes:    []corev1.Volume{volume("data", db.Name+"-data")},
				},
			},
		},
	}
}
