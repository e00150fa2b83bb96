package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"

	v1 "github.com/kopf-runtime/kopf-runtime/examples/clusters/api/v1"
	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

// createNetwork leaves its result in status.network: it has a Go type, as the status has.
func (o *operator) createNetwork(ctx context.Context, c *Change) error {
	wanted := c.Object.Spec.Network
	id, err := o.networks.EnsureNetwork(ctx, c.Object.Name, wanted.CIDR)
	if err != nil {
		return err
	}
	if err := o.networks.AllowFrom(ctx, c.Object.Name, wanted.AllowedFrom); err != nil {
		return err
	}
	log.FromContext(ctx).Info("Created the network", "network", id, "cidr", wanted.CIDR)
	c.SetResult(v1.Network{ID: id, CIDR: wanted.CIDR})
	return nil
}

// createControlPlane holds no worker while it waits: the object remembers when to ask again.
func (o *operator) createControlPlane(ctx context.Context, c *Change) error {
	network, err := kopf.Result[v1.Network](c, "network")
	if err != nil {
		return notYet(err)
	}
	plane, err := o.planes.EnsureControlPlane(ctx, c.Object.Name, c.Object.Spec.Version)
	if err != nil {
		return err
	}
	if !plane.Ready {
		return kopf.Temporary(fmt.Errorf("the control plane in network %s is not ready", network.ID), time.Second)
	}
	log.FromContext(ctx).Info("Created the control plane", "endpoint", plane.Endpoint)
	c.Info("ControlPlaneReady", "The API server is at "+plane.Endpoint)
	c.SetResult(v1.ControlPlane{Endpoint: plane.Endpoint})
	c.Patch(func(cluster *v1.Cluster) { cluster.Status.Version = plane.Version })
	return nil
}

// endpoint is where the API server of the cluster is. It is for handlers of changes and for those in the background:
// all of them can read results.
func endpoint(of kopf.Results) (string, error) {
	plane, err := kopf.Result[v1.ControlPlane](of, "controlPlane")
	return plane.Endpoint, notYet(err)
}

// notYet makes a missing result one that is waited for. Another error is one of the other handler, which does not
// mend by itself.
func notYet(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, kopf.ErrNoResult):
		return kopf.Temporary(err, time.Second)
	default:
		return kopf.Permanent(err)
	}
}

// createNamespace makes the place for all that belongs to the cluster. It can be called again at any time, as every
// handler can.
func createNamespace(ctx context.Context, c *Change) error {
	namespace := &corev1.Namespace{}
	namespace.Name = namespaceOf(c.Object)
	_, err := controllerutil.CreateOrPatch(ctx, c.Client, namespace, func() error {
		setLabel(namespace, v1.LabelCluster, c.Object.Name)
		return controllerutil.SetControllerReference(c.Object, namespace, c.Client.Scheme())
	})
	return err
}

func namespaceOf(cluster *v1.Cluster) string { return "cluster-" + cluster.Name }

// teardown takes away what creation has made, from the end to the beginning. The finalizer holds the cluster meanwhile.
func (o *operator) teardown(_ context.Context, c *Change) error {
	c.Sub("pools", o.deletePools, patient)
	c.Sub("namespace", deleteNamespace, patient)
	c.Sub("controlPlane", o.deleteControlPlane, kopf.After("pools", "namespace"), patient)
	c.Sub("network", o.deleteNetwork, kopf.After("controlPlane"), patient)
	return nil
}

// deletePools waits for the pools, which wait for their nodes. The cluster's own pool goes by its name, as the index
// may not have it yet.
func (o *operator) deletePools(ctx context.Context, c *Change) error {
	names := append(o.pools.Get(c.Object.Name), c.Object.Name)
	slices.Sort(names)
	var left []string
	for _, name := range slices.Compact(names) {
		pool := &v1.NodePool{}
		pool.Name = name
		switch err := c.Client.Delete(ctx, pool); {
		case err == nil:
			left = append(left, name)
		case !apierrors.IsNotFound(err):
			return err
		}
	}
	if len(left) > 0 {
		return kopf.Temporary(fmt.Errorf("pools %v are not gone yet", left), time.Second)
	}
	return nil
}

// deleteNamespace does not wait: nothing else is in the way of what is in there.
func deleteNamespace(ctx context.Context, c *Change) error {
	namespace := &corev1.Namespace{}
	namespace.Name = namespaceOf(c.Object)
	return client.IgnoreNotFound(c.Client.Delete(ctx, namespace))
}

func (o *operator) deleteControlPlane(ctx context.Context, c *Change) error {
	log.FromContext(ctx).Info("Deleting the control plane")
	return o.planes.DeleteControlPlane(ctx, c.Object.Name)
}

func (o *operator) deleteNetwork(ctx context.Context, c *Change) error {
	log.FromContext(ctx).Info("Deleting the network", "cidr", c.Object.Spec.Network.CIDR)
	return o.networks.DeleteNetwork(ctx, c.Object.Name)
}

// sayFarewell is optional: it alone would not hold a cluster.
func sayFarewell(ctx context.Context, c *Change) error {
	log.FromContext(ctx).Info("Farewell", "backup", c.Object.Status.Backup != nil)
	return nil
}
