package main

import (
	"context"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	v1 "github.com/kopf-runtime/kopf-runtime/examples/clusters/api/v1"
	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

// upgrade is a chain of steps with their own progress: steps that have succeeded are not repeated, not even after a
// restart.
func (o *operator) upgrade(ctx context.Context, c *Change) error {
	is, wanted := c.Object.Status.Version, c.Object.Spec.Version
	switch minor(wanted) {
	case minor(is): // back again from a refused version
		return nil
	case minor(is) + 1:
	default:
		c.Warn("UpgradeRefused", "Clusters are upgraded by one minor version at a time")
		return kopf.Permanent(fmt.Errorf("there is no way from %s to %s", is, wanted))
	}
	c.Sub("controlPlane", o.upgradeControlPlane, retryPolicy)
	c.Sub("pools", o.upgradePools, kopf.After("controlPlane"))
	c.Sub("nodes", o.awaitNodes, kopf.After("pools"), retryPolicy)
	if err := c.RunSubs(ctx); err != nil {
		return err
	}
	if nodes := c.Outcome("nodes"); nodes.State == kopf.SubFailed {
		c.Warn("UpgradeFailed", nodes.Message)
		return kopf.Permanent(fmt.Errorf("the cluster stays at %s: %s", is, nodes.Message))
	}
	log.FromContext(ctx).Info("Upgraded", "from", is, "to", wanted)
	c.Patch(func(cluster *v1.Cluster) { cluster.Status.Version = wanted })
	return nil
}

func minor(version string) (number int) {
	_, _ = fmt.Sscanf(version, "1.%d", &number) // the API server accepts nothing else
	return number
}

func (o *operator) upgradeControlPlane(ctx context.Context, c *Change) error {
	plane, err := o.planes.EnsureControlPlane(ctx, c.Object.Name, c.Object.Spec.Version)
	if err != nil {
		return err
	}
	if !plane.Ready {
		return kopf.Temporary(fmt.Errorf("the control plane is not ready"), time.Second)
	}
	log.FromContext(ctx).Info("Upgraded the control plane", "version", plane.Version)
	return nil
}

// upgradePools sets the desired version of the pools; their own handlers do the work.
func (o *operator) upgradePools(ctx context.Context, c *Change) error {
	for name := range o.pools.Values(c.Object.Name) {
		pool := &v1.NodePool{}
		if err := c.Client.Get(ctx, client.ObjectKey{Name: name}, pool); err != nil {
			return client.IgnoreNotFound(err)
		}
		wanted := pool.DeepCopy()
		wanted.Spec.Version = c.Object.Spec.Version
		if err := c.Client.Patch(ctx, wanted, client.MergeFrom(pool)); err != nil {
			return client.IgnoreNotFound(err)
		}
	}
	return nil
}

func (o *operator) awaitNodes(_ context.Context, c *Change) error {
	for pool := range o.pools.Values(c.Object.Name) {
		for node := range o.nodes.Values(pool) {
			if node.version != c.Object.Spec.Version {
				return kopf.Temporary(fmt.Errorf("node %s has version %s still", node.name, node.version), time.Second)
			}
		}
	}
	return nil
}
