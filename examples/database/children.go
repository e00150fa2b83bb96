package main

import (
	"context"
	"crypto/rand"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// children declares the objects that clients of the database need. The database owns them, so they are deleted with it;
// the service for reading is deleted with the last replica.
func children(ctx context.Context, c *Change) error {
	if err := provisioned(c); err != nil {
		return err
	}
	secret, err := credentials(ctx, c)
	if err != nil {
		return err
	}
	db := c.Object
	declared := []any{secret, service(db.Name, db.Status.Host)}
	if db.Spec.Replicas > 0 {
		declared = append(declared, service(db.Name+"-read", "read."+db.Status.Host))
	}
	if err := c.Ensure(ctx, declared...); err != nil {
		return err
	}
	log.FromContext(ctx).Info("All that it takes to connect is there", "children", len(declared))
	return nil
}

// service returns a Service that is a name within the cluster for a server outside of it.
func service(name, host string) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: host},
	}
}

// credentials returns the Secret for clients. It keeps an existing password, because the declared children must be the
// same each time, and a new password is random.
func credentials(ctx context.Context, c *Change) (*corev1.Secret, error) {
	db := c.Object
	key := client.ObjectKey{Namespace: db.Namespace, Name: db.Name + "-connection"}
	before := &corev1.Secret{}
	if err := c.APIReader.Get(ctx, key, before); client.IgnoreNotFound(err) != nil {
		return nil, err
	}
	password := before.Data["password"]
	if len(password) == 0 {
		password = []byte(rand.Text())
	}
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: key.Name},
		Data: map[string][]byte{
			"host": []byte(db.Status.Host), "users": []byte(strings.Join(db.Spec.Users, ",")), "password": password,
		},
	}, nil
}
