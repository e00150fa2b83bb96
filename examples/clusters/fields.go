package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"

	v1 "github.com/kopf-runtime/kopf-runtime/examples/clusters/api/v1"
	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

// resize creates the cluster's own pool, or changes its size. The pool is an object with its own handlers.
func resize(ctx context.Context, c *Change) error {
	if _, err := endpoint(c); err != nil {
		return err
	}
	before, after := kopf.FieldChange[int32](c)
	pool := &v1.NodePool{}
	pool.Name = c.Object.Name
	done, err := controllerutil.CreateOrPatch(ctx, c.Client, pool, func() error {
		if pool.CreationTimestamp.IsZero() { // an existing pool gets its version from an upgrade
			pool.Spec.Version = c.Object.Spec.Version
		}
		pool.Spec.Cluster, pool.Spec.Nodes = c.Object.Name, *after
		return controllerutil.SetControllerReference(c.Object, pool, c.Client.Scheme())
	})
	if err != nil {
		return err
	}
	log.FromContext(ctx).Info("The pool has its size", "from", before, "to", after, "result", done)
	return nil
}

// changeNetwork compares with the existing network, not with c.Old, which contains the refused network after a refusal.
// c.Diff has the changes within the field, with paths relative to it.
func (o *operator) changeNetwork(ctx context.Context, c *Change) error {
	network, err := kopf.Result[v1.Network](c, "network")
	if err != nil {
		return notYet(err)
	}
	wanted := c.Object.Spec.Network
	if wanted.CIDR != network.CIDR {
		c.Warn("NetworkRefused", "A network never changes its range of addresses")
		return kopf.Permanent(fmt.Errorf("network %s stays at %s", network.ID, network.CIDR))
	}
	if !c.Diff.Touches("allowedFrom") {
		return nil
	}
	log.FromContext(ctx).Info("The network is allowed from elsewhere", "ranges", wanted.AllowedFrom)
	return o.networks.AllowFrom(ctx, c.Object.Name, wanted.AllowedFrom)
}

// touchesSpec is a filter of changes: it excludes changes of labels, which the audit ignores.
func touchesSpec(_ context.Context, c *Change) bool { return c.Diff.Touches("spec") }

func audit(ctx context.Context, c *Change) error {
	var changes []string
	for _, item := range c.Diff {
		if strings.HasPrefix(item.Path.String(), "spec.") {
			changes = append(changes, item.String())
		}
	}
	log.FromContext(ctx).Info("Noted for the audit", "changes", changes)
	c.Info("Changed", fmt.Sprintf("Wanted now: %s", strings.Join(changes, "; ")))
	return nil
}

// installAddons runs one sub-handler for each changed add-on, so that a failing one does not affect the others.
func installAddons(ctx context.Context, c *Change) error {
	if _, err := endpoint(c); err != nil {
		return err
	}
	old, wanted := kopf.FieldChange[map[string]string](c)
	before, after := ptr.Deref(old, nil), ptr.Deref(wanted, nil)
	for _, name := range slices.Sorted(maps.Keys(after)) {
		if before[name] != after[name] {
			c.Sub(name, install(name, after[name]), retryPolicy)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if after[name] == "" {
			c.Sub(name, uninstall(name), retryPolicy)
		}
	}
	return nil
}

// install creates a ConfigMap in place of a real add-on.
func install(name, version string) kopf.ChangeFunc[*v1.Cluster] {
	return func(ctx context.Context, c *Change) error {
		addon := addonOf(c.Object, name)
		_, err := controllerutil.CreateOrPatch(ctx, c.Client, addon, func() error {
			addon.Data = map[string]string{"version": version}
			return nil
		})
		if err != nil {
			return err
		}
		log.FromContext(ctx).Info("Installed an add-on", "addon", name, "version", version)
		c.Patch(func(cluster *v1.Cluster) {
			if cluster.Status.Addons == nil {
				cluster.Status.Addons = map[string]string{}
			}
			cluster.Status.Addons[name] = version
		})
		return nil
	}
}

func uninstall(name string) kopf.ChangeFunc[*v1.Cluster] {
	return func(ctx context.Context, c *Change) error {
		if err := client.IgnoreNotFound(c.Client.Delete(ctx, addonOf(c.Object, name))); err != nil {
			return err
		}
		log.FromContext(ctx).Info("Removed an add-on", "addon", name)
		c.Patch(func(cluster *v1.Cluster) { delete(cluster.Status.Addons, name) })
		return nil
	}
}

func addonOf(cluster *v1.Cluster, name string) *corev1.ConfigMap {
	addon := &corev1.ConfigMap{}
	addon.Namespace, addon.Name = namespaceOf(cluster), "addon-"+name
	return addon
}
