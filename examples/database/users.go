package main

import (
	"context"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/log"

	v1 "github.com/kopf-runtime/kopf-runtime/examples/database/api/v1"
	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

// roleManager manages the users who may connect.
type roleManager struct{ roles roles }

// update runs one sub-handler for each user to be added or removed, so that a failing one does not delay the others. It
// compares with the users in the status, not with the old value of the field, because the field may change while the
// handler runs.
func (a roleManager) update(_ context.Context, c *Change) error {
	if err := provisioned(c); err != nil {
		return err
	}
	wanted, there := c.Object.Spec.Users, c.Object.Status.Users
	for _, user := range without(wanted, there) {
		c.Sub("grant-"+user, a.grant(user), retryPolicy)
	}
	for _, user := range without(there, wanted) {
		c.Sub("revoke-"+user, a.revoke(user), retryPolicy)
	}
	return nil
}

func (a roleManager) grant(user string) kopf.ChangeFunc[*v1.Database] {
	return func(ctx context.Context, c *Change) error {
		if err := a.roles.Grant(ctx, nameOf(c), user); err != nil {
			return err
		}
		log.FromContext(ctx).Info("May connect", "user", user)
		c.Patch(func(db *v1.Database) { db.Status.Users = append(without(db.Status.Users, []string{user}), user) })
		return nil
	}
}

func (a roleManager) revoke(user string) kopf.ChangeFunc[*v1.Database] {
	return func(ctx context.Context, c *Change) error {
		if err := a.roles.Revoke(ctx, nameOf(c), user); err != nil {
			return err
		}
		log.FromContext(ctx).Info("May not connect any more", "user", user)
		c.Patch(func(db *v1.Database) { db.Status.Users = without(db.Status.Users, []string{user}) })
		return nil
	}
}

// without returns the names that are not among the others.
func without(names, others []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return slices.Contains(others, name) })
}

// repair undoes changes of the users that were made directly on the servers. The operator does not get events of these
// changes, so a timer looks for them. Changes of the spec are left to update.
func (a roleManager) repair(ctx context.Context, r *Task) error {
	db, name := r.Latest(), nameOf(r)
	there, err := a.roles.List(ctx, name)
	if err != nil {
		return err
	}
	for _, user := range without(db.Status.Users, there) {
		if !slices.Contains(db.Spec.Users, user) {
			continue
		}
		if err := a.roles.Grant(ctx, name, user); err != nil {
			return err
		}
		log.FromContext(ctx).Info("A user was shut out, and may connect again", "user", user)
		r.Warn("DriftRepaired", "The server did not know "+user+" any more")
	}
	for _, user := range without(there, slices.Concat(db.Status.Users, db.Spec.Users)) {
		if err := a.roles.Revoke(ctx, name, user); err != nil {
			return err
		}
		log.FromContext(ctx).Info("A stranger may not connect any more", "user", user)
		r.Warn("DriftRepaired", "The server did let in "+user)
	}
	return nil
}
