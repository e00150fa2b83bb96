package main

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/log"

	v1 "github.com/kopf-runtime/kopf-runtime/examples/clusters/api/v1"
)

// checkHealth counts in memory: it asks no API server, and writes only what has changed.
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
	// A timer is called for one cluster once at a time, so the number needs no lock.
	phase, degraded := v1.PhaseReady, o.degraded.Of(cluster)
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

// backUp is called when a cluster has settled: backups of one that is about to change are not worth much.
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

// reportIncidents listens for as long as the cluster is there. What it counts is written at once, by Flush: it may not
// return for months.
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
