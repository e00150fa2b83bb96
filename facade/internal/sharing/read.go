package sharing

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

// silence is how old the renewal of a live replica may look. Replicas renew their Leases every few seconds, so most of
// this time is for clocks that differ.
const silence = 2 * time.Minute

// Report has the replicas of one operator.
type Report struct {
	Operator string `json:"operator"`
	// Lease is the name of the layout Lease. The names of all other Leases begin with it.
	Lease string `json:"lease"`
	// At is the time of the report, by the clock of this machine.
	At time.Time `json:"at"`
	// Groups has an entry for each namespace with such Leases.
	Groups []Group `json:"groups"`
}

// Group has the replicas of one namespace, which share the ranges.
type Group struct {
	Namespace string `json:"namespace"`
	// Shards is the number of ranges; zero if the replicas do not share ranges at the moment.
	Shards int `json:"shards"`
	// Elected is the replica that handles all objects by an election of a leader.
	Elected  string    `json:"elected,omitempty"`
	Replicas []Replica `json:"replicas"`
	// Unowned are the ranges without an owner.
	Unowned []int `json:"unowned"`
}

// Replica is one process.
type Replica struct {
	Identity string `json:"identity"`
	// Shards is its number of ranges. A replica with another number than its group waits.
	Shards  int   `json:"shards"`
	Ranges  []int `json:"ranges"`
	Objects int   `json:"objects"`
	Backlog int   `json:"backlog"`
	Leaving bool  `json:"leaving,omitempty"`
	// Silent is true if the replica has not renewed its Lease for minutes, so it does not run.
	Silent  bool      `json:"silent,omitempty"`
	Renewed time.Time `json:"renewed"`
}

// Lookup says which Leases belong to an operator.
type Lookup struct {
	Operator string
	// Lease is the name of the layout Lease. Without a namespace, it is looked up in all of them; if that is not
	// allowed, in the fallback.
	Lease    types.NamespacedName
	Fallback string
}

// Read makes a report by one list of Leases.
//
// # Errors
//
// It returns an error if the Leases may not be listed, or if there are none.
func Read(ctx context.Context, config *rest.Config, l Lookup) (Report, error) {
	client, err := coordinationv1client.NewForConfig(config)
	if err != nil {
		return Report{}, err
	}
	all, err := sharding.ReadStatuses(ctx, client, l.Lease)
	if l.Lease.Namespace == "" && apierrors.IsForbidden(err) {
		l.Lease.Namespace = cmp.Or(l.Fallback, "default")
		all, err = sharding.ReadStatuses(ctx, client, l.Lease)
	}
	if err != nil {
		return Report{}, err
	}
	if len(all) == 0 {
		place := "any namespace"
		if l.Lease.Namespace != "" {
			place = "namespace " + l.Lease.Namespace
		}
		return Report{}, fmt.Errorf("operator %q does not share its objects in this cluster: there are no Leases of "+
			"ranges with the name %q in %s. If it runs with --shards, give the same -n, -A or --leader-elect-id as "+
			"for run", l.Operator, l.Lease.Name, place)
	}
	r := Report{Operator: l.Operator, Lease: l.Lease.Name, At: time.Now().UTC().Truncate(time.Second)}
	for _, namespace := range slices.Sorted(maps.Keys(all)) {
		r.Groups = append(r.Groups, newGroup(namespace, all[namespace], r.At))
	}
	return r, nil
}

// newGroup returns the replicas of one namespace. The ranges of silent replicas have no owner.
func newGroup(namespace string, status sharding.Status, at time.Time) Group {
	g := Group{
		Namespace: namespace, Shards: status.Count, Elected: status.Elected, Replicas: []Replica{}, Unowned: []int{},
	}
	for _, one := range status.Unowned {
		g.Unowned = append(g.Unowned, one.Index)
	}
	for _, one := range status.Replicas {
		own := Replica{
			Identity: one.Identity, Shards: one.Count, Ranges: append([]int{}, one.Ranges...),
			Objects: one.Load.Objects, Backlog: one.Load.Backlog, Leaving: one.Leaving,
			Silent: at.Sub(one.Renewed) > silence, Renewed: one.Renewed,
		}
		if own.Silent {
			g.Unowned = append(g.Unowned, own.Ranges...)
		}
		g.Replicas = append(g.Replicas, own)
	}
	slices.Sort(g.Unowned)
	return g
}

// Err returns an error if no replica of a group runs.
func (r Report) Err() error {
	for _, g := range r.Groups {
		runs := func(one Replica) bool { return !one.Silent }
		if g.Elected == "" && !slices.ContainsFunc(g.Replicas, runs) {
			return fmt.Errorf("no replica of operator %q runs in namespace %s", r.Operator, g.Namespace)
		}
	}
	return nil
}
