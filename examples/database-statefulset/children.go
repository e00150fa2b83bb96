package main

import (
	"context"
	"crypto/rand"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	v1 "github.com/kopf-runtime/kopf-runtime/examples/database-statefulset/api/v1"
	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

// ensureChildren declares all children except the server. The volumes and their password outlive the database: another
// database with the same name takes them over.
func ensureChildren(ctx context.Context, c *Change) error {
	db := c.Object
	children := []any{
		kopf.Retain(kopf.Once(password(db)), kopf.AdoptFormer()), // random, so only the first one counts
		kopf.Retain(claim(db.Name+"-data", db.Spec.Size), kopf.AdoptFormer()),
		kopf.Retain(claim(db.Name+"-backups", db.Spec.Size), kopf.AdoptFormer()),
		service(db),
	}
	if db.Spec.BackupSchedule != "" {
		children = append(children, backups(db)) // otherwise, an existing one is deleted
	}
	if err := c.Ensure(ctx, children...); err != nil {
		return err
	}
	log.FromContext(ctx).Info("Declared the children", "count", len(children), "backups", db.Spec.BackupSchedule)
	return nil
}

func password(db *v1.Database) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: db.Name + "-password"},
		Data:       map[string][]byte{"password": []byte(rand.Text())},
	}
}

func claim(name string, size resource.Quantity) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources: corev1.VolumeResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceStorage: size},
			},
		},
	}
}

// service has no address of its own: its name leads to the Pod of the server.
func service(db *v1.Database) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: db.Name},
		Spec: corev1.ServiceSpec{
			ClusterIP: corev1.ClusterIPNone, Selector: map[string]string{"database": db.Name},
			Ports: []corev1.ServicePort{{
				Name: "sql", Port: engineOf(db).port, Protocol: corev1.ProtocolTCP,
				TargetPort: intstr.FromString("sql"),
			}},
		},
	}
}

func backups(db *v1.Database) *batchv1.CronJob {
	return &batchv1.CronJob{
		ObjectMeta: metav1.ObjectMeta{Name: db.Name + "-backups"},
		Spec: batchv1.CronJobSpec{
			Schedule: db.Spec.BackupSchedule, ConcurrencyPolicy: batchv1.ForbidConcurrent,
			JobTemplate: batchv1.JobTemplateSpec{Spec: backupJob(db)},
		},
	}
}

// backupJob dumps all data into the volume of the backups.
func backupJob(db *v1.Database) batchv1.JobSpec {
	engine := engineOf(db)
	return batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyOnFailure,
		Containers: []corev1.Container{{
			Name: "backup", Image: image(db),
			Command: []string{"sh", "-c", engine.dumpCommand + ` -h "$0" >"/backups/$(date +%F-%H%M).sql"`,
				db.Name},
			Env:          []corev1.EnvVar{passwordFrom(db, engine.dumpPasswordVariable)},
			VolumeMounts: []corev1.VolumeMount{{Name: "backups", MountPath: "/backups"}},
		}},
		Volumes: []corev1.Volume{volume("backups", db.Name+"-backups")},
	}}}
}
