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

// createNetwork sets its result, which is stored in status.network and has the Go type of this field.
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

// createControlPlane does not block a worker while it waits: the time of the next attempt is stored on the object.
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

// endpoint returns the address of the cluster's API server. Change handlers, timers and daemons can all read results.
func endpoint(of kopf.Results) (string, error) {
	plane, err := kopf.Result[v1.ControlPlane](of, "controlPlane")
	return plane.Endpoint, notYet(err)
}

// notYet makes the error of a missing result temporary, so that the handler is retried. Any other error is permanent.
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

// createNamespace creates the namespace for the cluster's secrets and add-ons. Like every handler, it can be called
// again at any time.
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

// teardown deletes everything in the reverse order of creation. The finalizer blocks the deletion of the cluster
// meanwhile.
func (o *operator) teardown(_ context.Context, c *Change) error {
	c.Sub("pools", o.deletePools, retryPolicy)
	c.Sub("namespace", deleteNamespace, retryPolicy)
	c.Sub("controlPlane", o.deleteControlPlane, kopf.After("pools", "namespace"), retryPolicy)
	c.Sub("network", o.deleteNetwork, kopf.After("controlPlane"), retryPolicy)
	return nil
}

// deletePools waits for the pools, which wait for their nodes. The cluster's own pool is deleted by its name, as the
// index may not have it yet.
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

// deleteNamespace does not wait, because no other step depends on the content of the namespace.
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

// sayFarewell is optional: it does not need a finalizer.
func sayFarewell(ctx context.Context, c *Change) error {
	log.FromContext(ctx).Info("Farewell", "backup", c.Object.Status.Backup != nil)
	return nil
}
