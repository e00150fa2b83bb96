package clusterops

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"

	"github.com/kopf-runtime/kopf-runtime/peering/sharding"
)

// ReplicaReport has the replicas of one operator.
type ReplicaReport struct {
	Operator string `json:"operator"`
	// Lease is the name of the layout Lease. The names of all other Leases begin with it.
	Lease string `json:"lease"`
	// At is the time of the report, by the clock of this machine.
	At time.Time `json:"at"`
	// Groups has an entry for each namespace with such Leases.
	Groups []ReplicaGroup `json:"groups"`
}

// ReplicaGroup has the replicas of one namespace, which share the ranges.
type ReplicaGroup struct {
	Namespace string `json:"namespace"`
	sharding.Status
}

// LeaseLookup says which Leases belong to an operator.
type LeaseLookup struct {
	Operator string
	// Lease is the name of the layout Lease. Without a namespace, it is looked up in all of them; if that is not
	// allowed, in the fallback.
	Lease    types.NamespacedName
	Fallback string
}

// ReadReplicas makes a report by one list of Leases: which replica has which ranges, and which ranges have no owner.
//
// # Errors
//
// It returns an error if the Leases may not be listed, or if there are none.
func ReadReplicas(ctx context.Context, config *rest.Config, l LeaseLookup) (ReplicaReport, error) {
	client, err := coordinationv1client.NewForConfig(config)
	if err != nil {
		return ReplicaReport{}, err
	}
	all, err := sharding.ReadStatus(ctx, client, l.Lease)
	if l.Lease.Namespace == "" && apierrors.IsForbidden(err) {
		l.Lease.Namespace = cmp.Or(l.Fallback, "default")
		all, err = sharding.ReadStatus(ctx, client, l.Lease)
	}
	if err != nil {
		return ReplicaReport{}, err
	}
	if len(all) == 0 {
		place := "any namespace"
		if l.Lease.Namespace != "" {
			place = "namespace " + l.Lease.Namespace
		}
		return ReplicaReport{}, fmt.Errorf("operator %q does not share its objects in this cluster: there are no "+
			"Leases of ranges with the name %q in %s. If it runs with --shards, give the same -n, -A or "+
			"--leader-elect-id as for run", l.Operator, l.Lease.Name, place)
	}
	r := ReplicaReport{Operator: l.Operator, Lease: l.Lease.Name, At: time.Now().UTC().Truncate(time.Second)}
	for _, namespace := range slices.Sorted(maps.Keys(all)) {
		r.Groups = append(r.Groups, ReplicaGroup{Namespace: namespace, Status: all[namespace]})
	}
	return r, nil
}

// Err returns an error if no replica of a group runs.
func (r ReplicaReport) Err() error {
	for _, g := range r.Groups {
		runs := func(one sharding.Replica) bool { return !one.Silent }
		if g.Elected == "" && !slices.ContainsFunc(g.Replicas, runs) {
			return fmt.Errorf("no replica of operator %q runs in namespace %s", r.Operator, g.Namespace)
		}
	}
	return nil
}
