package main

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/log"

	v1 "github.com/kopf-runtime/kopf-runtime/examples/clusters/api/v1"
)

// checkHealth counts the nodes in the indices. It does not send requests unless the status has changed.
func (o *operator) checkHealth(ctx context.Context, r *Run) error {
	cluster, health := r.Latest(), v1.Health{}
	for pool := range o.pools.Values(cluster.Name) {
		for node := range o.nodes.Values(pool) {
			health.Nodes++
			if node.ready {
				health.Ready++
			}
		}
	}
	// A timer is not called concurrently for one cluster, so the number does not need a lock.
	phase, degraded := v1.PhaseReady, o.degradedChecks.Of(cluster)
	*degraded++
	if health.Ready >= cluster.Spec.Nodes {
		*degraded = 0
	}
	if *degraded > 0 {
		phase = v1.PhaseDegraded
	}
	if *degraded == 3 {
		r.Warn("Degraded", fmt.Sprintf("%d of %d nodes are ready", health.Ready, cluster.Spec.Nodes))
	}
	if phase != cluster.Status.Phase {
		log.FromContext(ctx).Info("The health has changed", "phase", phase, "ready", health.Ready)
	}
	r.SetResult(health)
	r.Patch(func(cluster *v1.Cluster) { cluster.Status.Phase = phase })
	return nil
}

// backUp is called when a cluster has not changed for a while, because a backup is outdated after a change.
func (o *operator) backUp(ctx context.Context, r *Run) error {
	server, err := endpoint(r)
	if err != nil {
		return err
	}
	snapshot, err := o.planes.Snapshot(ctx, r.Latest().Name)
	if err != nil {
		return err
	}
	log.FromContext(ctx).Info("Backed up", "endpoint", server, "snapshot", snapshot)
	r.SetResult(v1.Backup{Snapshot: snapshot, Version: r.Latest().Status.Version})
	return nil
}

// reportIncidents listens until the cluster is deleted. It may run for months, so it writes its count at once with
// Flush.
func (o *operator) reportIncidents(ctx context.Context, r *Run) error {
	reported := o.incidents.Incidents(r.Latest().Name)
	for {
		select {
		case <-r.Stopping():
			log.FromContext(ctx).Info("Stopped listening for incidents", "why", r.StopReason().Error())
			return nil
		case incident := <-reported:
			log.FromContext(ctx).Info("There is an incident", "incident", incident)
			r.Warn("Incident", incident)
			r.Patch(func(cluster *v1.Cluster) { cluster.Status.Incidents++ })
			if err := r.Flush(ctx); err != nil {
				return err
			}
		}
	}
}
