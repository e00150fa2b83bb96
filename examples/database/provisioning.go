package main

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/log"

	v1 "github.com/kopf-runtime/kopf-runtime/examples/database/api/v1"
	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

// provisioner creates and removes the servers of databases.
type provisioner struct {
	machines machines
	archive  archive
}

// provision is a chain: the first server, then the replicas. The result of each step is stored before the next one
// begins.
func (p provisioner) provision(ctx context.Context, c *Change) error {
	c.Sub("primary", p.primary, retryPolicy)
	for replica := range c.Object.Spec.Replicas {
		c.Sub(fmt.Sprintf("replica-%d", replica+1), p.replica(replica+1), retryPolicy, kopf.After("primary"))
	}
	if err := c.RunSubs(ctx, kopf.OneByOne); err != nil {
		return err
	}
	if primary := c.Outcome("primary"); primary.State == kopf.SubFailed {
		return kopf.Permanent(fmt.Errorf("there is no server: %s", primary.Message))
	}
	enter(c, v1.PhaseServing)
	return nil
}

func (p provisioner) primary(ctx context.Context, c *Change) error {
	spec := c.Object.Spec
	host, err := p.machines.Start(ctx, nameOf(c), spec.Version, spec.Size)
	if err != nil {
		return err
	}
	log.FromContext(ctx).Info("Provisioned", "host", host, "version", spec.Version)
	c.Patch(func(db *v1.Database) {
		db.Status.Host, db.Status.Version, db.Status.Size = host, spec.Version, spec.Size
	})
	return nil
}

func (p provisioner) replica(number int32) kopf.ChangeFunc[*v1.Database] {
	return func(ctx context.Context, c *Change) error {
		log.FromContext(ctx).Info("A replica follows", "replica", number)
		return p.machines.Follow(ctx, nameOf(c), number)
	}
}

// attach connects to the servers of a database after a restart of the operator. It does not need sub-handlers, because
// its calls are fast.
func (p provisioner) attach(ctx context.Context, c *Change) error {
	if c.Object.Status.Host == "" {
		return nil // its provisioning is unfinished, and goes on now
	}
	host, err := p.machines.Start(ctx, nameOf(c), c.Object.Status.Version, c.Object.Status.Size)
	if err != nil {
		return err
	}
	log.FromContext(ctx).Info("Attached", "host", host)
	return p.machines.Follow(ctx, nameOf(c), c.Object.Spec.Replicas)
}

// resize gets the old and the new value of its field. It is not called for new databases, which do not have an old
// value.
func (p provisioner) resize(ctx context.Context, c *Change) error {
	if err := provisioned(c); err != nil {
		return err
	}
	before, now := kopf.FieldChange[int32](c)
	if *now < *before {
		c.Warn("ShrinkingRefused", fmt.Sprintf("The database keeps its %d GiB", *before))
		return kopf.Permanent(fmt.Errorf("a database of %d GiB cannot shrink to %d GiB", *before, *now))
	}
	if _, err := p.machines.Start(ctx, nameOf(c), c.Object.Status.Version, *now); err != nil {
		return err
	}
	log.FromContext(ctx).Info("Resized", "from", *before, "to", *now)
	c.Patch(func(db *v1.Database) { db.Status.Size = *now })
	return nil
}

// remove destroys the server only after a backup.
func (p provisioner) remove(ctx context.Context, c *Change) error {
	if c.Object.Status.Host == "" {
		return p.machines.Destroy(ctx, nameOf(c))
	}
	c.Sub("backup", backUp(p.archive), retryPolicy)
	c.Sub("destroy", p.destroy, retryPolicy, kopf.After("backup"))
	if err := c.RunSubs(ctx); err != nil {
		return err
	}
	if backup := c.Outcome("backup"); backup.State == kopf.SubFailed {
		c.Warn("ServerLeft", "The server stays, as there is no backup: "+backup.Message)
	}
	return nil
}

// destroy is retried by its policy while the server is busy.
func (p provisioner) destroy(ctx context.Context, c *Change) error {
	if err := p.machines.Destroy(ctx, nameOf(c)); err != nil {
		return err
	}
	log.FromContext(ctx).Info("Destroyed", "host", c.Object.Status.Host)
	return nil
}
