package main

import (
	corev1 "k8s.io/api/core/v1"

	v1 "github.com/kopf-runtime/kopf-runtime/examples/database-statefulset/api/v1"
)

// engine is what differs between the kinds of servers.
type engine struct {
	port                                   int32
	folder                                 string // of the data
	probe                                  []string
	dumpCommand                            string
	passwordVariable, dumpPasswordVariable string // environment variables of the server and of the dump
}

// engines has an entry for each value that the CRD allows.
var engines = map[v1.Engine]engine{
	v1.Postgres: {
		port: 5432, folder: "/var/lib/postgresql/data", probe: []string{"pg_isready", "-U", "postgres"},
		dumpCommand: "pg_dumpall -U postgres", passwordVariable: "POSTGRES_PASSWORD",
		dumpPasswordVariable: "PGPASSWORD",
	},
	v1.MySQL: {
		port: 3306, folder: "/var/lib/mysql", probe: []string{"mysqladmin", "ping", "-h", "127.0.0.1"},
		dumpCommand: "mysqldump --all-databases -u root", passwordVariable: "MYSQL_ROOT_PASSWORD",
		dumpPasswordVariable: "MYSQL_PWD",
	},
}

func engineOf(db *v1.Database) engine { return engines[db.Spec.Engine] }

func image(db *v1.Database) string { return string(db.Spec.Engine) + ":" + db.Spec.Version }

func passwordFrom(db *v1.Database, variable string) corev1.EnvVar {
	from := &corev1.SecretKeySelector{Key: "password"}
	from.Name = db.Name + "-password"
	return corev1.EnvVar{Name: variable, ValueFrom: &corev1.EnvVarSource{SecretKeyRef: from}}
}

func volume(name, claim string) corev1.Volume {
	source := &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim}
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: source}}
}
