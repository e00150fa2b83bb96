package main

import (
	"context"
	"crypto/rand"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"

	v1 "github.com/kopf-runtime/kopf-runtime/examples/databases/api/v1"
	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

// accountant says who may connect, and how.
type accountant struct{ roles roles }

// update has a sub-handler for each user that is to be added or removed: one that fails does not keep the others
// waiting. It compares with what there is, and not with what there was to be before: the field may change while it is
// at work.
func (a accountant) update(_ context.Context, c *Change) error {
	if err := provisioned(c); err != nil {
		return err
	}
	wanted, there := c.Object.Spec.Users, c.Object.Status.Users
	for _, user := range without(wanted, there) {
		c.Sub("grant-"+user, a.grant(user), patient)
	}
	for _, user := range without(there, wanted) {
		c.Sub("revoke-"+user, a.revoke(user), patient)
	}
	return nil
}

func (a accountant) grant(user string) kopf.ChangeFunc[*v1.Database] {
	return func(ctx context.Context, c *Change) error {
		if err := a.roles.Grant(ctx, nameOf(c), user); err != nil {
			return err
		}
		log.FromContext(ctx).Info("May connect", "user", user)
		c.Patch(func(db *v1.Database) { db.Status.Users = append(without(db.Status.Users, []string{user}), user) })
		return nil
	}
}

func (a accountant) revoke(user string) kopf.ChangeFunc[*v1.Database] {
	return func(ctx context.Context, c *Change) error {
		if err := a.roles.Revoke(ctx, nameOf(c), user); err != nil {
			return err
		}
		log.FromContext(ctx).Info("May not connect any more", "user", user)
		c.Patch(func(db *v1.Database) { db.Status.Users = without(db.Status.Users, []string{user}) })
		return nil
	}
}

// without gives the names that are not among the others.
func without(names, others []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return slices.Contains(others, name) })
}

// connection keeps a Secret for those who connect. It goes with the database, as that owns it.
func (a accountant) connection(ctx context.Context, c *Change) error {
	if err := provisioned(c); err != nil {
		return err
	}
	db := c.Object
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: db.Namespace, Name: db.Name + "-connection"}}
	what, err := controllerutil.CreateOrUpdate(ctx, c.Client, secret, func() error {
		if secret.Data == nil {
			secret.Data = map[string][]byte{"password": []byte(rand.Text())}
		}
		secret.Data["host"] = []byte(db.Status.Host)
		secret.Data["users"] = []byte(strings.Join(db.Spec.Users, ","))
		return controllerutil.SetControllerReference(db, secret, c.Client.Scheme())
	})
	if err != nil {
		return err
	}
	log.FromContext(ctx).Info("The secret for connections is there", "secret", secret.Name, "was", what)
	return nil
}
